{{/* Annotations of objects that exist only while the release is uninstalled. A failed Job stays for inspection. Takes the weight. */}}
{{- define "readygate.cleanupHook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
