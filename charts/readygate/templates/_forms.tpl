{{/* Each of these fails if a value does not have its form, and renders nothing. The message has an example; the message of
a schema would contain a regular expression. */}}

{{/* Takes [path, text]. */}}
{{- define "readygate.wantRegistry" -}}
{{- $path := first . }}{{ $text := last . }}
{{- if contains "://" $text }}
{{- fail (printf "%s is %q, which is a URL, must be host and path alone, e.g. registry.example.com/team" $path $text) }}
{{- else if and $text (not (regexMatch "^([a-z0-9.-]+|\\[[0-9a-f:]+\\])(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*/?$" $text)) }}
{{- fail (printf "%s is %q, must be host and path in lower case, without a tag, e.g. registry.example.com/team" $path $text) }}
{{- end }}
{{- end }}

{{/* Takes [path, host]. */}}
{{- define "readygate.wantHost" -}}
{{- $path := first . }}{{ $text := last . }}
{{- if and $text (regexMatch "[/@ ]|^[^:\\[]*:[0-9]*$" $text) }}
{{- fail (printf "%s is %q, must be a name or an address without a port, e.g. api.example.com; the port is a value of its own" $path $text) }}
{{- end }}
{{- end }}

{{/* Rejects labels that selectors, the cleanup and policies use. Takes [path, labels]; null is none. */}}
{{- define "readygate.wantLabels" -}}
{{- $path := first . }}
{{- range $key, $_ := last . | default dict }}
{{- if regexMatch "^(app\\.kubernetes\\.io|helm\\.sh|readygate\\.dev)/" $key }}
{{- fail (printf "%s has %q, which the chart uses to select its own objects, must be a label of yours, e.g. example.com/team" $path $key) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Takes [path, duration]; null is none. */}}
{{- define "readygate.wantDuration" -}}
{{- $path := first . }}{{ $text := last . }}
{{- if and (kindIs "string" $text) (not (regexMatch "^([0-9]+(\\.[0-9]+)?(h|m|s|ms))+$" $text)) }}
{{- fail (printf "%s is %q, must be a duration in h, m, s or ms, e.g. 15s" $path $text) }}
{{- end }}
{{- end }}

{{/* Takes [path, resources], as those of a container; null is none. */}}
{{- define "readygate.wantQuantities" -}}
{{- $path := first . }}{{ $resources := last . | default dict }}
{{- range $sort := list "requests" "limits" }}
{{- range $name, $amount := get $resources $sort | default dict }}
{{- if not (regexMatch "^[0-9]+(\\.[0-9]*)?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$" (toString $amount)) }}
{{- fail (printf "%s.%s.%s is %q, must be a quantity, e.g. %s" $path $sort $name (toString $amount) (eq $name "cpu" | ternary "50m" "64Mi")) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The address of a check, if it uses the network. Takes {at, check, hostNetwork}. */}}
{{- define "readygate.wantEndpoint" -}}
{{- $at := .at }}{{ $hostNetwork := .hostNetwork }}
{{- $asked := dict }}
{{- with .check.http }}
{{- if not (regexMatch "^https?://[^/]" .url) }}
{{- fail (printf "%s.http.url is %q, must begin with http:// or https:// and a host, e.g. http://localhost:9099/readiness" $at .url) }}
{{- end }}
{{- if not .unixSocket }}{{ $_ := set $asked "http.url" .url }}{{ end }}
{{- end }}
{{- range $kind := list "tcp" "grpc" }}
{{- with get $.check $kind }}
{{- if not (or (regexMatch "^[^/]+:[0-9]+$" .address) (and (eq $kind "grpc") (hasPrefix "unix:///" .address))) }}
{{- fail (printf "%s.%s.address is %q, must be host:port, e.g. localhost:6784%s" $at $kind .address (eq $kind "grpc" | ternary ", or a socket, e.g. unix:///run/agent.sock" "")) }}
{{- end }}
{{- $_ := set $asked (printf "%s.address" $kind) .address }}
{{- end }}
{{- end }}
{{- range $field, $address := $asked }}
{{- if and (not $hostNetwork) (regexMatch "^(https?://)?(localhost|127[0-9.]+|\\[::1\\])(:|/|$)" (lower $address)) }}
{{- fail (printf "%s.%s is %q, which without hostNetwork is the reporter's own pod, where nothing else listens: set hostNetwork: true to check what listens on the node" $at $field $address) }}
{{- end }}
{{- end }}
{{- end }}

{{/* podgate uses ports of the node, and mounts directories of the node. Takes {podgate, ports}: the users of ports on the node;
the ports of podgate are added. */}}
{{- define "readygate.wantPodgate" -}}
{{- $podgate := .podgate }}{{ $ports := .ports }}
{{- include "readygate.wantQuantities" (list "podgate.resources" $podgate.resources) }}
{{- include "readygate.wantLabels" (list "podgate.podLabels" $podgate.podLabels) }}
{{- $paths := dict }}
{{- range $i, $host := $podgate.hostPaths }}
{{- $at := printf "podgate.hostPaths[%d].path" $i }}
{{- $path := clean $host.path }}
{{- if or (not (hasPrefix "/" $host.path)) (contains ":" $host.path) (has ".." (splitList "/" $host.path)) }}
{{- fail (printf "%s is %q, must be an absolute path, without .. and colons, e.g. /var/run/calico" $at $host.path) }}
{{- else if eq $path "/" }}
{{- fail (printf "%s is %q, which contains the secrets of all pods on the node: name the directory to which the component writes, e.g. /var/run/calico" $at $host.path) }}
{{- end }}
{{- with get $paths $path }}
{{- fail (printf "%s is %q, and so is %s: name each directory once" $at $host.path .) }}
{{- end }}
{{- $_ := set $paths $path $at }}
{{- end }}
{{- if $podgate.enabled }}
{{- range $field, $number := dict "podgate.health.port" $podgate.health.port "podgate.metrics.port" $podgate.metrics.port }}
{{- $port := toString $number }}
{{- with get $ports $port }}
{{- fail (printf "%s is %s, which %s uses too, and both are on the network of the node: use another port, e.g. 9480" $field $port .) }}
{{- end }}
{{- $_ := set $ports $port $field }}
{{- end }}
{{- end }}
{{- end }}
