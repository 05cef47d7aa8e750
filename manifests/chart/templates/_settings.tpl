{{/*
What was given, as texts. Helm keeps numbers as floats, so that 1000000 would be written 1e+06, and YAML reads `off` as false.
*/}}

{{/* One value as the agent reads it. */}}
{{- define "careen.text" -}}
{{- if kindIs "float64" . -}}
{{- if eq (floor .) . -}}{{- printf "%.0f" . -}}{{- else -}}{{- toString . -}}{{- end -}}
{{- else if kindIs "map" . -}}
{{- toRawJson . -}}
{{- else if not (kindIs "invalid" .) -}}
{{- toString . -}}
{{- end -}}
{{- end -}}

{{/* A value or a list of them as a JSON list of texts; empty when nothing was given. about: the row of files/settings.yaml. */}}
{{- define "careen.texts" -}}
{{- $texts := list -}}
{{- if kindIs "slice" .value -}}
{{- range .value -}}{{- $texts = append $texts (include "careen.text" .) -}}{{- end -}}
{{- else if and (kindIs "bool" .value) (not .value) .about.no -}}
{{- $texts = list .about.no -}}
{{- else if kindIs "string" .value -}}
{{- if or .value .about.empty -}}{{- $texts = list .value -}}{{- end -}}
{{- else if not (kindIs "invalid" .value) -}}
{{- $texts = list (include "careen.text" .value) -}}
{{- end -}}
{{- toRawJson $texts -}}
{{- end -}}

{{/* Of each setting that is given under `configuration`: by flag, its key, place and texts. */}}
{{- define "careen.configured" -}}
{{- $found := dict -}}
{{- range $key, $about := .Files.Get "files/settings.yaml" | fromYaml -}}
{{- if and (ne $about.place "chart") (hasKey $.Values.configuration $key) (not (include "careen.isSaidBySignal" (dict "key" $key "about" $about "root" $))) -}}
{{- $value := get $.Values.configuration $key -}}
{{- if and (has $key (list "slackHookUrl" "slackUsername" "slackChannel")) (kindIs "string" $value) -}}
{{- $value = tpl $value $ -}}
{{- end -}}
{{- $texts := include "careen.texts" (dict "value" $value "about" $about) | fromJsonArray -}}
{{- if $texts -}}
{{- $_ := set $found $about.flag (dict "key" $key "place" $about.place "texts" $texts "list" (kindIs "slice" $value)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toRawJson $found -}}
{{- end -}}

{{/* The host's sentinel where it always is: the component signal has the host's units tell of it, and kured's values name it. */}}
{{- define "careen.isSaidBySignal" -}}
{{- if and .root.Values.components.signal (eq .key "rebootSentinel") (eq (get .root.Values.configuration .key | toString) .about.default) -}}yes{{- end -}}
{{- end -}}

{{/* extraArgs: by flag, its texts. */}}
{{- define "careen.extra" -}}
{{- $found := dict -}}
{{- $extra := default dict .Values.extraArgs -}}
{{- range .Files.Get "files/settings.yaml" | fromYaml -}}
{{- if hasKey $extra .flag -}}
{{- $about := merge (dict "empty" true) . -}}
{{- $_ := set $found .flag (include "careen.texts" (dict "value" (get $extra .flag) "about" $about) | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- toRawJson $found -}}
{{- end -}}

{{/* What the agents obey, whichever way it was given: by flag, its texts. */}}
{{- define "careen.effective" -}}
{{- $found := include "careen.extra" . | fromJson -}}
{{- range $flag, $given := include "careen.configured" . | fromJson -}}
{{- $_ := set $found $flag $given.texts -}}
{{- end -}}
{{- toRawJson $found -}}
{{- end -}}

{{/* The lines of the ConfigMap. */}}
{{- define "careen.configMapLines" -}}
{{- range $flag, $given := include "careen.configured" . | fromJson -}}
{{- if eq $given.place "configMap" }}
{{ $flag }}: {{ if $given.list }}{{ toRawJson $given.texts }}{{ else }}{{ first $given.texts | toRawJson }}{{ end }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The flags of the DaemonSet that were given, as a JSON list of {flag, argument}. */}}
{{- define "careen.flags" -}}
{{- $found := list -}}
{{- range $flag, $given := include "careen.configured" . | fromJson -}}
{{- if eq $given.place "flag" -}}
{{- range $given.texts -}}{{- $found = append $found (dict "flag" $flag "argument" (printf "--%s=%s" $flag .)) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range $flag, $texts := include "careen.extra" . | fromJson -}}
{{- range $texts -}}{{- $found = append $found (dict "flag" $flag "argument" (printf "--%s=%s" $flag .)) -}}{{- end -}}
{{- end -}}
{{- toRawJson $found -}}
{{- end -}}

{{/* The Secret's content, by key. */}}
{{- define "careen.secrets" -}}
{{- $found := dict -}}
{{- if not .Values.existingSecret -}}
{{- range $flag, $given := include "careen.configured" . | fromJson -}}
{{- if eq $given.place "secret" -}}{{- $_ := set $found $flag (join "\n" $given.texts) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- toRawJson $found -}}
{{- end -}}
