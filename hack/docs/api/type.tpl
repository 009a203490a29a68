{{- define "type" -}}
{{- if markdownShouldRenderType . }}
### {{ .Name }}
{{ if .IsAlias }}
Type: {{ markdownRenderTypeLink .UnderlyingType }}
{{ end }}
{{ .Doc }}
{{ if .References }}
Appears in:
{{- range $i, $type := .SortedReferences }}{{ if $i }},{{ end }} {{ markdownRenderTypeLink $type }}{{ end }}
{{ end }}
{{- template "limits" .Validation }}
{{- if .GVK }}
**`apiVersion`** `{{ .GVK.Group }}/{{ .GVK.Version }}`, **`kind`** `{{ .GVK.Kind }}`
{{ end }}
{{- range .Members }}{{ if ne .Name "metadata" }}
**`{{ .Name }}`** ({{ markdownRenderType .Type }}{{ range .Validation }}{{ if hasPrefix "Required" . }}, required{{ end }}{{ end }}{{ if .Default }}, default `{{ .Default }}`{{ end }})

{{ .Doc }}
{{ template "limits" .Validation }}
{{- end }}{{ end }}
{{- range .EnumValues }}
- `{{ .Name }}`: {{ .Doc | replace "\n" " " | trim }}
{{- end }}
{{ end }}
{{- end -}}

{{- define "limits" -}}
{{- $limits := list -}}
{{- range . }}{{ if and (not (hasPrefix "Optional" .)) (not (hasPrefix "Required" .)) (not (hasPrefix "XValidation" .)) }}{{ $limits = append $limits (printf "`%s`" .) }}{{ end }}{{ end -}}
{{- if $limits }}
Limits: {{ join ", " $limits }}
{{ end -}}
{{- end -}}
