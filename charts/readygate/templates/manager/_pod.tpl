{{/* Scheduling of a pod that must run although every node is held and no pod network works: the manager and the cleanup. */}}
{{- define "readygate.managerPod" -}}
{{- $manager := .Values.manager -}}
hostNetwork: {{ $manager.hostNetwork }}
dnsPolicy: {{ $manager.hostNetwork | ternary "Default" "ClusterFirst" }}
{{- with $manager.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $manager.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $manager.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "readygate.podSecurity" . | nindent 2 }}
{{- end }}
