{{/*
Values that cannot be served. Each is a sentence with what to do instead; all of them are told at once. What one value alone may
look like is in values.schema.json; what the agent refuses at its start (docs/operations.md, "Settings") is its own affair.
*/}}
{{- define "careen.refuse" -}}
{{- $problems := list -}}
{{- range list "careen.refuse.names" "careen.refuse.kureds" "careen.refuse.twice" "careen.refuse.arguments" "careen.refuse.settings" "careen.refuse.components" "careen.refuse.pod" -}}
{{- range include . $ | splitList "\n" -}}
{{- with trim . -}}{{- $problems = append $problems (printf "- %s" .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "\n\nThese values cannot be used:\n%s\n" (join "\n" $problems)) -}}
{{- end -}}
{{- end -}}

{{- define "careen.refuse.names" }}
{{- range $key, $value := .Values.podLabels }}
{{- if eq $key "name" }}
podLabels.name: the DaemonSet selects its pods by this label; choose another one
{{- end }}
{{- end }}
{{- $lock := get (include "careen.effective" . | fromJson) "lock-annotation" | default (list "weave.works/kured-node-lock") | first }}
{{- if hasKey (default dict .Values.dsAnnotations) $lock }}
dsAnnotations.{{ $lock }}: this annotation is the lock, and each `helm upgrade` would overwrite the claims in it; to install careen paused, install with `nodeSelector: {careen.dev/paused: "no"}`, which no node has, run `careen lock pause`, and upgrade without it
{{- end }}
{{- end }}

{{/* What kured's chart has, or had, and this one cannot serve. */}}
{{- define "careen.refuse.kureds" }}
{{- if .Values.podSecurityPolicy.create }}
podSecurityPolicy.create: Kubernetes has no PodSecurityPolicy since 1.25; remove the value and label the namespace pod-security.kubernetes.io/enforce=privileged
{{- end }}
{{- if .Values.autolock }}
autolock: careen has no CronJob that takes the lock; remove it and say when reboots may begin with configuration.rebootDays, startTime, endTime and timeZone
{{- end }}
{{- if .Values.configuration.annotationTtl }}
configuration.annotationTtl: kured itself renamed it to lockTtl; careen frees a claim by proof and not by time, so remove it
{{- end }}
{{- if regexMatch "(^|/)kured$" .Values.image.repository }}
image.repository: {{ .Values.image.repository }} is kured's own image, which is not careen; give the one that you built and pushed (README.md, "Install")
{{- end }}
{{- $effective := include "careen.effective" . | fromJson }}
{{- $looks := and (eq (toString .Values.configuration.useRebootSentinelHostPath) "false") (not (get $effective "reboot-sentinel-command")) (not (hasKey $effective "host-root")) }}
{{- $usual := get (.Files.Get "files/settings.yaml" | fromYaml).rebootSentinel "default" }}
{{- if and $looks .Values.volumeMounts (ne (get $effective "reboot-sentinel" | default (list $usual) | first) $usual) }}
configuration.useRebootSentinelHostPath: without it kured looks for rebootSentinel in its container, and careen looks on the host; give the path on the host, or configuration.hostRoot: "" to look in the container
{{- end }}
{{- end }}

{{/* One setting, one place: of two values nobody knows which is meant, and kured's order of them is not careen's. */}}
{{- define "careen.refuse.twice" }}
{{- $configured := include "careen.configured" . | fromJson }}
{{- $extra := include "careen.extra" . | fromJson }}
{{- range $flag, $texts := $extra }}
{{- with get $configured $flag }}
extraArgs.{{ $flag }}: configuration.{{ .key }} is given as well; keep one of them
{{- end }}
{{- end }}
{{- $variables := dict }}
{{- range $key, $about := .Files.Get "files/settings.yaml" | fromYaml }}
{{- range $about.variables }}{{- $_ := set $variables . (dict "flag" $about.flag "place" $about.place "key" $key) }}{{ end }}
{{- end }}
{{- $seen := dict }}
{{- range .Values.extraEnvVars }}
{{- $about := get $variables .name }}
{{- if hasKey $seen .name }}
extraEnvVars: {{ .name }} is given twice; keep one of them
{{- else if and $about (hasKey $seen $about.flag) }}
extraEnvVars: {{ .name }} and {{ get $seen $about.flag }} are both given; keep one of them
{{- end }}
{{- $_ := set $seen .name .name }}
{{- if $about }}{{- $_ := set $seen $about.flag .name }}{{ end }}
{{- if $about }}
{{- if eq $about.place "chart" }}
extraEnvVars: the chart itself sets {{ .name }}; remove it
{{- else if hasKey $configured $about.flag }}
extraEnvVars: {{ .name }} and configuration.{{ $about.key }} are both given; keep one of them
{{- else if hasKey $extra $about.flag }}
extraEnvVars: {{ .name }} and extraArgs.{{ $about.flag }} are both given; keep one of them
{{- end }}
{{- else if regexMatch "^(CAREEN|KURED)_" .name }}
extraEnvVars: {{ .name }} is no setting, and no agent starts with it; correct or remove it
{{- else if eq .name "POD_NAME" }}
extraEnvVars: the chart itself sets {{ .name }}; remove it
{{- end }}
{{- end }}
{{- if and .Values.notifyUrlSecret (hasKey $seen "notify-url-file") }}
extraEnvVars: {{ get $seen "notify-url-file" }} and notifyUrlSecret are both given; keep one of them (configuration.notifyUrlFile goes with either)
{{- end }}
{{- if and .Values.existingSecret (or (hasKey $configured "notify-url") (hasKey $configured "slack-hook-url")) }}
existingSecret: configuration.notifyUrl or configuration.slackHookUrl is given as well as existingSecret; move the URL into your Secret, under the key notify-url or slack-hook-url
{{- end }}
{{- end }}

{{- define "careen.refuse.arguments" }}
{{- range $key, $about := .Files.Get "files/settings.yaml" | fromYaml }}
{{- if hasKey (default dict $.Values.extraArgs) $about.flag }}
{{- if eq $about.place "chart" }}
extraArgs.{{ $about.flag }}: the chart itself sets this flag; remove it (fullnameOverride chooses the name)
{{- else if eq $about.place "secret" }}
extraArgs.{{ $about.flag }}: this is a secret, and everybody on the host can read a flag; give configuration.{{ $key }}, which goes into a Secret, or existingSecret
{{- else if or (kindIs "invalid" (get $.Values.extraArgs $about.flag)) (and (has $about.default (list "true" "false")) (eq (get $.Values.extraArgs $about.flag | toString) "")) }}
extraArgs.{{ $about.flag }}: has no value; write true or false for a switch
{{- end }}
{{- end }}
{{- end }}
{{- range $key := keys (default dict .Values.configMapData) }}
{{- if eq $key "config.yaml" }}
configMapData.config.yaml: the chart itself writes this key from the values under configuration; remove the key and give your settings under configuration
{{- end }}
{{- end }}
{{- end }}

{{/* Pairs of settings that the agent refuses at its start as well. */}}
{{- define "careen.refuse.settings" }}
{{- $it := include "careen.effective" . | fromJson }}
{{- range .Values.extraEnvVars }}
{{- if regexMatch "^(CAREEN|KURED)_" .name }}
{{- $_ := set $it (regexReplaceAll "^(CAREEN|KURED)_" .name "" | lower | replace "_" "-") (list "given") }}
{{- end }}
{{- end }}
{{- $prometheus := get $it "prometheus-url" | join "" }}
{{- $regexp := get $it "alert-filter-regexp" | join "" }}
{{- if and (eq (get $it "alert-filter-match-only" | join "") "true") (not $regexp) }}
configuration.alertFilterMatchOnly: without alertFilterRegexp no alert could ever forbid a reboot; give the expression, or false
{{- end }}
{{- if and (or $regexp (eq (get $it "alert-firing-only" | join "") "true")) (not $prometheus) (not (get $it "alertmanager-url" | join "")) }}
configuration.alertFilterRegexp and alertFiringOnly: without prometheusUrl or alertmanagerUrl no alert is looked at; give an address, or remove them
{{- end }}
{{- if and (eq (get $it "force-reboot-past-budgets" | join "") "true") (not (eq (get $it "force-reboot" | join "") "true")) }}
configuration.forceRebootPastBudgets: does nothing without forceReboot; give both or none
{{- end }}
{{- if and (ne (get $it "prometheus-username" | join "") "") (eq (get $it "prometheus-password-file" | join "") "") }}
configuration.prometheusUsername: needs prometheusPasswordFile, a file of a Secret that volumes and volumeMounts bring
{{- end }}
{{- $host := get $it "metrics-host" | join "" }}
{{- if and (regexMatch "^(127\\.|localhost$|\\[?::1\\]?$)" $host) (not .Values.hostNetwork) }}
configuration.metricsHost: the kubelet sends its probes to the pod's IP address, but with {{ $host }} the agent listens only inside the pod; leave metricsHost out
{{- end }}
{{- if eq (get $it "metrics-port" | join "") "0" }}
configuration.metricsPort: 0 is any free port, and the kubelet would not find it; give a port
{{- end }}
{{- end }}

{{- define "careen.refuse.components" }}
{{- $it := include "careen.effective" . | fromJson }}
{{- if and .Values.components.signal .Values.components.privileged }}
components: signal gives up the host's rights and privileged gives all of them; choose one
{{- end }}
{{- if .Values.components.signal }}
{{- if get $it "reboot-sentinel-command" }}
components.signal: a rebootSentinelCommand needs the host's namespaces, which this component gives up; switch it off, or let the host's units follow what the command looks at
{{- end }}
{{- range list "reboot-sentinel" "host-root" "host-lock-dir" }}
{{- if hasKey $it . }}
components.signal: the component signal itself sets --{{ . }}; remove that value (if the host has another sentinel, change the two units in manifests/signal/host so that they follow that sentinel; see manifests/README.md)
{{- end }}
{{- end }}
{{- if and (hasKey $it "reboot-method") (ne (get $it "reboot-method" | join "") "signal") }}
components.signal: this component makes careen reboot the host by a signal, but rebootMethod is {{ get $it "reboot-method" | join "" }}; remove one of the two settings
{{- end }}
{{- end }}
{{- end }}

{{- define "careen.refuse.pod" }}
{{- $agent := get (include "careen.objects" . | fromYaml).agents (include "careen.variant" .) }}
{{- $ours := first $agent.spec.template.spec.containers }}
{{- $context := default dict .Values.containerSecurityContext }}
{{- $both := dict "pod" (default dict .Values.podSecurityContext) "container" $context }}
{{- range $where, $given := $both }}
{{- if or $given.runAsNonRoot (and (hasKey $given "runAsUser") (ne (int $given.runAsUser) 0) (or (eq $where "container") (not (hasKey $context "runAsUser")))) }}
{{ $where }}SecurityContext: PID 1 of the host belongs to root, so an agent that is not root cannot ask it for a reboot; remove runAsUser and runAsNonRoot
{{- end }}
{{- end }}
{{- if and $context (not $context.privileged) }}
{{- $given := list }}
{{- range (default dict $context.capabilities).add }}{{- $given = append $given (trimPrefix "CAP_" .) }}{{ end }}
{{- $missing := list }}
{{- range (default dict $ours.securityContext.capabilities).add }}{{- if not (or (has . $given) (has "ALL" $given)) }}{{- $missing = append $missing . }}{{ end }}{{ end }}
{{- if $missing }}
containerSecurityContext: it lacks {{ join ", " $missing }}, so the agent could not {{ if $.Values.components.signal }}reboot{{ else }}look at the host and reboot{{ end }}; leave it out for the fewest rights that do, or choose components.signal or components.privileged
{{- end }}
{{- end }}
{{- if and (not .Values.tolerateAllTaints) (not .Values.tolerations) }}
tolerateAllTaints: without it and without tolerations no tainted node, no control plane, would ever reboot; give the tolerations that you want
{{- end }}
{{- include "careen.refuse.memory" . }}
{{- end }}

{{- define "careen.refuse.memory" }}
{{- with get (default dict (default dict .Values.resources).limits) "memory" }}
{{- if eq (include "careen.mebibytes" (include "careen.text" .)) "" }}
resources.limits.memory: {{ include "careen.text" . }} is no quantity of memory; write for example 1Gi, or leave resources out
{{- end }}
{{- end }}
{{- end }}

{{/* A quantity of memory in Mi, rounded down; nothing where the text is none (1Gi, 1.5G, 1e9, 1Pi, as Kubernetes reads them). */}}
{{- define "careen.mebibytes" -}}
{{- if regexMatch "^[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+|[KMGTPE]i|[numkMGTPE])?$" . -}}
{{- $number := regexFind "^[+]?[0-9.]+([eE][+-]?[0-9]+)?" . | trimPrefix "+" -}}
{{- $units := dict "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 -}}
{{- $units = merge $units (dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976) -}}
{{- $factor := get $units (trimPrefix "+" . | trimPrefix $number) | default 1 | float64 -}}
{{- divf (mulf (float64 $number) $factor) 1048576 | floor | int64 -}}
{{- end -}}
{{- end -}}
