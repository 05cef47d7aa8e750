{{/* The DaemonSet of manifests/, changed by values. */}}
{{- define "careen.daemonset" -}}
{{- $objects := include "careen.objects" . | fromYaml -}}
{{- $agent := get $objects.agents (include "careen.variant" .) -}}
{{- $spec := $agent.spec -}}
{{- $template := $spec.template -}}
{{- $pod := $template.spec -}}
{{- $container := first $pod.containers -}}

{{- $annotations := include "careen.daemonsetAnnotations" . | fromJson -}}
{{- if $annotations -}}{{- $_ := set $agent.metadata "annotations" $annotations -}}{{- end -}}

{{- if not (kindIs "invalid" .Values.revisionHistoryLimit) -}}{{- $_ := set $spec "revisionHistoryLimit" (int .Values.revisionHistoryLimit) -}}{{- end -}}
{{- $strategy := dict "type" .Values.updateStrategy -}}
{{- if eq .Values.updateStrategy "RollingUpdate" -}}
{{- $maximum := .Values.maxUnavailable -}}
{{- if kindIs "invalid" $maximum -}}{{- $maximum = $spec.updateStrategy.rollingUpdate.maxUnavailable -}}{{- end -}}
{{- if not (kindIs "string" $maximum) -}}{{- $maximum = int $maximum -}}{{- end -}}
{{- $_ := set $strategy "rollingUpdate" (dict "maxUnavailable" $maximum) -}}
{{- end -}}
{{- $_ := set $spec "updateStrategy" $strategy -}}

{{- $podAnnotations := dict -}}
{{- range $key, $value := .Values.podAnnotations -}}{{- $_ := set $podAnnotations $key (include "careen.text" $value) -}}{{- end -}}
{{- $secrets := include "careen.secrets" . -}}
{{- if ne $secrets "{}" -}}{{- $_ := set $podAnnotations "careen.dev/secret" (sha256sum $secrets) -}}{{- end -}}
{{- if $podAnnotations -}}{{- $_ := set $template.metadata "annotations" $podAnnotations -}}{{- end -}}
{{- range $key, $value := .Values.podLabels -}}{{- $_ := set $template.metadata.labels $key (include "careen.text" $value) -}}{{- end -}}

{{- with .Values.priorityClassName -}}{{- $_ := set $pod "priorityClassName" . -}}{{- end -}}
{{- $tolerations := ternary $pod.tolerations list .Values.tolerateAllTaints -}}
{{- $_ := set $pod "tolerations" (concat $tolerations (default list .Values.tolerations)) -}}
{{- with .Values.affinity -}}{{- $_ := set $pod "affinity" . -}}{{- end -}}
{{- $_ := set $pod "nodeSelector" (default dict .Values.nodeSelector) -}}
{{- if .Values.hostNetwork -}}
{{- $_ := set $pod "hostNetwork" true -}}
{{- $_ := set $pod "dnsPolicy" "ClusterFirstWithHostNet" -}}
{{- end -}}
{{- with .Values.dnsPolicy -}}{{- $_ := set $pod "dnsPolicy" . -}}{{- end -}}
{{- with .Values.podSecurityContext -}}{{- $_ := set $pod "securityContext" . -}}{{- end -}}
{{- with .Values.initContainers -}}{{- $_ := set $pod "initContainers" . -}}{{- end -}}
{{- with .Values.volumes -}}{{- $_ := set $pod "volumes" (concat (default list $pod.volumes) .) -}}{{- end -}}

{{- with .Values.notifyUrlSecret -}}
{{- $volume := dict "name" "careen-notify-urls" "secret" (dict "secretName" . "optional" true) -}}
{{- $_ := set $pod "volumes" (append (default list $pod.volumes) $volume) -}}
{{- $mount := dict "name" "careen-notify-urls" "mountPath" "/etc/careen/notify-urls" "readOnly" true -}}
{{- $_ := set $container "volumeMounts" (append (default list $container.volumeMounts) $mount) -}}
{{- end -}}

{{- include "careen.ownImage" (dict "root" . "pod" $pod) -}}
{{- $_ := set $container "args" (include "careen.arguments" (dict "args" $container.args "root" .) | fromJsonArray) -}}
{{- $_ := set $container "env" (include "careen.environment" (dict "env" $container.env "root" .) | fromJsonArray) -}}
{{- with .Values.volumeMounts -}}{{- $_ := set $container "volumeMounts" (concat (default list $container.volumeMounts) .) -}}{{- end -}}
{{- with .Values.resources -}}{{- $_ := set $container "resources" . -}}{{- end -}}
{{- with .Values.containerSecurityContext -}}
{{- $_ := set $container "securityContext" (merge (deepCopy .) (dict "runAsUser" 0)) -}}
{{- end -}}
{{- $effective := include "careen.effective" . | fromJson -}}
{{- with get $effective "metrics-port" -}}
{{- $_ := set (first $container.ports) "containerPort" (first . | int) -}}
{{- end -}}
{{- range $probe := list "livenessProbe" "readinessProbe" "startupProbe" -}}
{{- with get $.Values $probe -}}
{{- $_ := set $container $probe (include "careen.probe" (dict "given" . "ours" (get $container $probe)) | fromJson) -}}
{{- end -}}
{{- end -}}
{{- toYaml $agent -}}
{{- end -}}

{{/* The image of the values in a pod's first container, and what pulls it. */}}
{{- define "careen.ownImage" -}}
{{- $values := .root.Values.image -}}
{{- $container := first .pod.containers -}}
{{- $tag := default .root.Chart.AppVersion (include "careen.text" $values.tag) -}}
{{- $_ := set $container "image" (printf "%s:%s" $values.repository $tag) -}}
{{- with $values.pullPolicy -}}{{- $_ := set $container "imagePullPolicy" . -}}{{- end -}}
{{- with $values.pullSecrets -}}
{{- $pulls := list -}}
{{- range . -}}{{- $pulls = append $pulls (ternary (dict "name" .) . (kindIs "string" .)) -}}{{- end -}}
{{- $_ := set $.pod "imagePullSecrets" $pulls -}}
{{- end -}}
{{- end -}}

{{/* A probe as given, over ours. kured's probes ask for /metrics, which says nothing of the agent's progress. */}}
{{- define "careen.probe" -}}
{{- $ours := ternary .ours dict (kindIs "map" .ours) | deepCopy -}}
{{- $given := deepCopy .given -}}
{{- if or $given.exec $given.tcpSocket $given.grpc -}}
{{- $ours = omit $ours "httpGet" -}}
{{- else if and $given.httpGet $ours.httpGet (eq (default "" $given.httpGet.path) "/metrics") -}}
{{- $_ := set $given "httpGet" (omit $given.httpGet "path") -}}
{{- end -}}
{{- mergeOverwrite $ours $given | toRawJson -}}
{{- end -}}

{{/* The container's arguments: ours, without those that were given, and those. */}}
{{- define "careen.arguments" -}}
{{- $flags := include "careen.flags" .root | fromJsonArray -}}
{{- $given := dict -}}
{{- range $flags -}}{{- $_ := set $given .flag true -}}{{- end -}}
{{- $arguments := list -}}
{{- range .args -}}
{{- if not (hasKey $given (regexReplaceAll "^--([a-z-]+)=.*$" . "${1}")) -}}{{- $arguments = append $arguments . -}}{{- end -}}
{{- end -}}
{{- $name := include "careen.fullname" .root -}}
{{- if ne $name "careen" -}}{{- $arguments = append $arguments (printf "--config-map=%s" $name) -}}{{- end -}}
{{- range $flags -}}{{- $arguments = append $arguments .argument -}}{{- end -}}
{{- if .root.Values.notifyUrlSecret -}}{{- $arguments = append $arguments "--notify-url-file=/etc/careen/notify-urls" -}}{{- end -}}
{{- toRawJson $arguments -}}
{{- end -}}

{{/* The container's environment: ours, with the Secret's name, without those that were given, and those. */}}
{{- define "careen.environment" -}}
{{- $root := .root -}}
{{- $given := dict -}}
{{- range $root.Values.extraEnvVars -}}{{- $_ := set $given .name true -}}{{- end -}}
{{- $environment := list -}}
{{- range .env -}}
{{- if eq .name "CAREEN_NOTIFY_URL" -}}{{- $_ := set .valueFrom.secretKeyRef "name" (include "careen.secret" $root) -}}{{- end -}}
{{- if not (hasKey $given .name) -}}{{- $environment = append $environment . -}}{{- end -}}
{{- end -}}
{{- if and (not (hasKey $given "CAREEN_SLACK_HOOK_URL")) (or $root.Values.existingSecret (hasKey (include "careen.secrets" $root | fromJson) "slack-hook-url")) -}}
{{- $source := dict "name" (include "careen.secret" $root) "key" "slack-hook-url" "optional" true -}}
{{- $environment = append $environment (dict "name" "CAREEN_SLACK_HOOK_URL" "valueFrom" (dict "secretKeyRef" $source)) -}}
{{- end -}}
{{- range $root.Values.extraEnvVars -}}
{{- $each := deepCopy . -}}
{{- if hasKey $each "value" -}}{{- $_ := set $each "value" (include "careen.text" $each.value) -}}{{- end -}}
{{- $environment = append $environment $each -}}
{{- end -}}
{{- toRawJson $environment -}}
{{- end -}}

{{/* The DaemonSet's annotations: a component's, with what the settings say; dsAnnotations count more. */}}
{{- define "careen.daemonsetAnnotations" -}}
{{- $objects := include "careen.objects" . | fromYaml -}}
{{- $annotations := dict -}}
{{- range $component, $added := $objects.annotations -}}
{{- if get $.Values.components $component -}}{{- $annotations = merge $annotations $added -}}{{- end -}}
{{- end -}}
{{- if .Values.components.admission -}}
{{- $effective := include "careen.effective" . | fromJson -}}
{{- with get $effective "lock-annotation" -}}{{- $_ := set $annotations "admission.careen.dev/lock-annotation" (first .) -}}{{- end -}}
{{- with get $effective "prefer-no-schedule-taint" -}}
{{- $keys := prepend . (get $annotations "admission.careen.dev/taints") | compact | uniq -}}
{{- $_ := set $annotations "admission.careen.dev/taints" (join "," $keys) -}}
{{- end -}}
{{- $keys := list -}}
{{- range list "pre-reboot-node-labels" "post-reboot-node-labels" -}}
{{- range get $effective . | default list -}}
{{- range splitList "," . -}}{{- $keys = append $keys (splitList "=" . | first | trim) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $keys -}}{{- $_ := set $annotations "admission.careen.dev/labels" ($keys | uniq | join ",") -}}{{- end -}}
{{- end -}}
{{- range $key, $value := .Values.dsAnnotations -}}{{- $_ := set $annotations $key (include "careen.text" $value) -}}{{- end -}}
{{- toRawJson $annotations -}}
{{- end -}}
