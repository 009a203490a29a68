{{/* Labels of an object. Takes {context, component, reporter}; the component is optional. */}}
{{- define "readygate.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .context.Chart.Name .context.Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .context.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .context.Release.Service }}
app.kubernetes.io/instance: {{ .context.Release.Name }}
{{ include "readygate.podLabels" . }}
{{- end }}

{{/* Labels of a pod. A label that changes with the chart version would restart the pod. Takes {context, component, reporter}. */}}
{{- define "readygate.podLabels" -}}
app.kubernetes.io/part-of: readygate
{{ include "readygate.selector" . }}
{{- with .context.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels that select pods; they must never change. Takes {context, component, reporter}. */}}
{{- define "readygate.selector" -}}
app.kubernetes.io/name: readygate
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- with .reporter }}
readygate.dev/reporter: {{ . | quote }}
{{- end }}
{{- end }}

{{/* An image's reference. No registry has a default: the project publishes no images, and without a registry the container
runtime would pull from Docker Hub. A repository may contain its registry. Takes {context, image}. */}}
{{- define "readygate.image" -}}
{{- if and (not .context.Values.image.registry) (not (regexMatch "^([^/]*[.:][^/]*|localhost)/" .image.repository)) }}
{{- fail (printf "image.registry is \"\", so nodes would pull the image %s from Docker Hub, where this project publishes none: set the registry that has the images, e.g. image.registry=registry.example.com" .image.repository) }}
{{- end }}
{{- with .context.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}
{{- .image.repository }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .context.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The text of a generated file. Takes {context, file}. */}}
{{- define "readygate.text" -}}
{{- .context.Files.Get .file | required (printf "the chart lacks %s: make generate writes it" .file) }}
{{- end }}

{{/* The text of a generated file, for the namespace of the release. The template engine never parses the text. A namespace
such as 123 is quoted where it is a value. Takes {context, file}. */}}
{{- define "readygate.file" -}}
{{- $namespace := .context.Release.Namespace }}
{{- $text := include "readygate.text" . }}
{{- regexReplaceAll "(?m)(-|:) readygate-system$" $text (printf "${1} %q" $namespace) | replace "readygate-system" $namespace }}
{{- end }}

{{/* The roles of a generated file, and their bindings to an account. The manager has no right to update policies that an
administrator applies. Takes {context, file, component, account, annotations}. */}}
{{- define "readygate.roles" -}}
{{- $labels := include "readygate.labels" . | fromYaml }}
{{- $account := .account }}{{ $context := .context }}{{ $annotations := .annotations }}
{{- range regexSplit "(?m)^---$" (include "readygate.file" .) -1 }}
{{- with fromYaml . }}
{{- $metadata := dict "name" .metadata.name "labels" $labels }}
{{- with .metadata.namespace }}{{ $_ := set $metadata "namespace" . }}{{ end }}
{{- $readOnly := and (eq $account "readygate-manager") (not $context.Values.policies.managed) }}
{{- range .rules }}{{ if and $readOnly (has "mutatingadmissionpolicies" .resources) }}{{ $_ := set . "verbs" (without .verbs "update") }}{{ end }}{{ end }}
{{- with $annotations }}{{ $_ := set $metadata "annotations" . }}{{ end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  {{- toYaml $metadata | nindent 2 }}
rules:
  {{- toYaml .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  {{- toYaml $metadata | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .metadata.name }}
subjects:
- kind: ServiceAccount
  name: {{ $account }}
  namespace: {{ $context.Release.Namespace | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The address of the API server as variables of a container; nothing without a host. Takes {host, port}. */}}
{{- define "readygate.apiServer" -}}
{{- if .host }}
- name: KUBERNETES_SERVICE_HOST
  value: {{ .host | quote }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ .port | default 6443 | quote }}
{{- end }}
{{- end }}

{{/* The security context of a pod: no root. */}}
{{- define "readygate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "readygate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The version of MutatingAdmissionPolicy that the cluster serves, v1 or v1beta1; empty if it serves none. A list of APIs with
kinds comes from a cluster, or from helm template --api-versions; without one the version of Kubernetes decides. */}}
{{- define "readygate.mutates" -}}
{{- $apis := .Capabilities.APIVersions }}
{{- if $apis.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}v1
{{- else if $apis.Has "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy" }}v1beta1
{{- else if $apis.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy" }}
{{- else if semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version }}v1{{ end }}
{{- end }}

{{/* The version of the policy that taints nodes at creation; empty without this policy. */}}
{{- define "readygate.taintNewNodes" -}}
{{- if eq (toString .Values.taintNewNodes.enabled) "auto" }}{{ include "readygate.mutates" . }}
{{- else if eq (toString .Values.taintNewNodes.enabled) "true" }}{{ include "readygate.mutates" . | default "v1" }}{{ end }}
{{- end }}

{{/* The version of the policy that adds gates to pods at creation; empty without this policy. */}}
{{- define "readygate.gateNewPods" -}}
{{- if .Values.podgate.enabled }}{{ include "readygate.mutates" . }}{{ end }}
{{- end }}

{{/* A file of MutatingAdmissionPolicies in the version that the cluster serves. Takes {context, file, version}. */}}
{{- define "readygate.mutating" -}}
{{- regexReplaceAll "(?m)^apiVersion: admissionregistration[.]k8s[.]io/v1$" (include "readygate.text" .) (printf "apiVersion: admissionregistration.k8s.io/%s" .version) }}
{{- end }}

{{/* A policy that is compiled from the rules. An upgrade keeps the spec in the cluster: with an empty policy, nodes would be created
without their taint and pods without their gate until the manager had written the rules again. The new manager writes what its version
compiles differently. With policies.managed=false an administrator applies the policy, and the chart renders it only if this release
installed it before: an upgrade must not delete it. Takes {context, file, version}. */}}
{{- define "readygate.filled" -}}
{{- $policy := include "readygate.mutating" . | fromYaml }}
{{- $rendered := .context.Values.policies.managed }}{{ $release := .context.Release.Name }}
{{- with lookup $policy.apiVersion $policy.kind "" $policy.metadata.name }}
{{- if eq (dig "labels" "app.kubernetes.io/part-of" "" .metadata) "readygate" }}{{ $_ := set $policy "spec" .spec }}{{ end }}
{{- if eq (dig "annotations" "meta.helm.sh/release-name" "" .metadata) $release }}{{ $rendered = true }}{{ end }}
{{- end }}
{{- if $rendered }}{{ toYaml $policy }}{{ end }}
{{- end }}

{{/* The first mapping with the fields of the second, as YAML. Sprig's merge treats false as absent. Takes [fields, others]. */}}
{{- define "readygate.override" -}}
{{- $fields := deepCopy (first .) }}
{{- range $name, $value := last . }}{{ $_ := set $fields $name $value }}{{ end }}
{{- toYaml $fields }}
{{- end }}
