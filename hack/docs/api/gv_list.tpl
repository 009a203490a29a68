{{- define "gvList" -}}
<!-- Generated from api/ by make generate. Do not edit. -->
# API

Which kinds does Readygate have, and what does each field mean? `kubectl explain nrr.spec` and `kubectl explain prr.spec` print the same text.
{{ range . }}
- {{ markdownRenderGVLink . }}
{{- end }}
{{ range . }}{{ template "gvDetails" . }}{{ end }}
{{- end -}}
