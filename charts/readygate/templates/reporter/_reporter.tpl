{{/* An entry of reporters with its defaults and derived fields, as YAML. Takes {context, reporter}. */}}
{{- define "readygate.reporter" -}}
{{- $given := .reporter }}
{{- $name := printf "readygate-reporter-%s" $given.name }}
{{- $cni := list }}{{ $canary := false }}{{ $peers := false }}{{ $programs := false }}
{{- $checks := list }}{{ $types := list }}
{{- range $given.checks }}
{{- $check := deepCopy . }}
{{- $types = append $types .conditionType }}
{{- if hasKey . "exec" }}{{ $programs = true }}{{ end }}
{{- if hasKey . "cni" }}
{{- $programs = true }}{{ $cni = append $cni (.cni | default dict) }}
{{- if hasKey (.cni | default dict) "canary" }}{{ $canary = true }}{{ end }}
{{- end }}
{{- if hasKey . "peers" }}
{{- $peers = true }}
{{- $_ := set $check "peers" (include "readygate.override" (list (dict "ready" $name "everyone" (printf "%s-all" $name)) .peers) | fromYaml) }}
{{- end }}
{{- $checks = append $checks $check }}
{{- end }}
{{- $hostNetwork := hasKey $given "hostNetwork" | ternary $given.hostNetwork $canary }}
{{- $metrics := include "readygate.override" (list (dict "port" 9445 "expose" (not $hostNetwork)) $given.metrics) | fromYaml }}
{{- $config := dict "apiVersion" "readygate.dev/v1alpha1" "kind" "ReporterConfig" "checks" $checks }}
{{- with $given.heartbeatPeriod }}{{ $_ := set $config "heartbeatPeriod" . }}{{ end }}
{{- $paths := list }}
{{- range $cni }}
{{- $paths = append $paths (dict "path" (.confDir | default "/etc/cni/net.d")) }}
{{- range .binDirs | default (list "/opt/cni/bin") }}{{ $paths = append $paths (dict "path" .) }}{{ end }}
{{- if hasKey . "canary" }}
{{- $paths = concat $paths (list (dict "path" "/var/lib/cni" "readOnly" false) (dict "path" ((.canary | default dict).stateDir | default "/var/lib/readygate/canary") "readOnly" false)) }}
{{- end }}
{{- end }}
{{- /* One mount per path; the values override the defaults. */}}
{{- $byPath := dict }}
{{- range concat $paths ($given.hostPaths | default list) }}{{ $_ := set $byPath .path . }}{{ end }}
{{- $hostPaths := list }}
{{- range keys $byPath | sortAlpha }}{{ $hostPaths = append $hostPaths (get $byPath .) }}{{ end }}
{{- toYaml (dict
  "name" $name "types" $types "config" (toYaml $config) "hostNetwork" $hostNetwork "metrics" $metrics
  "cni" (gt (len $cni) 0) "canary" $canary "peers" $peers "programs" $programs
  "hostPaths" $hostPaths
  "apiServer" ($given.apiServer | default ($hostNetwork | ternary .context.Values.manager.apiServer dict))
) }}
{{- end }}

{{/* The default resources. Programs of a check run in the reporter's container, and a CPU limit would make them fail. */}}
{{- define "readygate.reporterResources" -}}
requests:
  cpu: 10m
  memory: 32Mi
limits:
  {{- if .programs }}
  memory: 64Mi
  {{- else }}
  {{- if not .peers }}
  cpu: 10m
  {{- end }}
  memory: 32Mi
  {{- end }}
{{- end }}

{{/* The security context of the container. Connecting a canary needs the privileges of a container runtime. */}}
{{- define "readygate.reporterSecurity" -}}
{{- if .canary -}}
runAsUser: 0
runAsNonRoot: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  add:
    - SYS_ADMIN # make and enter a network namespace
    - NET_ADMIN # plugins make interfaces, addresses and routes
    - NET_RAW # the canary pings its gateway
appArmorProfile: # the default profile forbids to mount a namespace
  type: Unconfined
{{- else }}
{{- include "readygate.containerSecurity" . }}
{{- end }}
{{- end }}
