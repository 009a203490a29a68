{{/* Annotations of what exists only while the release is uninstalled. What failed stays, to be looked at. Takes the weight. */}}
{{- define "readygate.cleanupHook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
