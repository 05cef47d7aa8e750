{{/* What things are called. */}}

{{- define "careen.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "careen.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "careen.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The Secret that messages to people need. */}}
{{- define "careen.secret" -}}
{{- default (include "careen.fullname" .) .Values.existingSecret -}}
{{- end -}}

{{/* What Helm's own objects carry besides the labels of kustomize. */}}
{{- define "careen.helmLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}

{{/* Labels of objects that only the chart has. */}}
{{- define "careen.labels" -}}
app.kubernetes.io/name: careen
app.kubernetes.io/part-of: careen
{{ include "careen.helmLabels" . }}
{{- end -}}

{{/* The objects of manifests/, with names put in. */}}
{{- define "careen.objects" -}}
{{- .Files.Get "files/objects.yaml" | replace "%NAMESPACE%" .Release.Namespace | replace "%ACCOUNT%" (include "careen.account" .) | replace "%NAME%" (include "careen.fullname" .) -}}
{{- end -}}

{{/* The component that changes the DaemonSet; "default" without one. */}}
{{- define "careen.variant" -}}
{{- if .Values.components.signal -}}signal{{- else if .Values.components.privileged -}}privileged{{- else -}}default{{- end -}}
{{- end -}}
