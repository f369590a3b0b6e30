{{/*
The metadata of the hook's objects. A failed Job is kept for its log until the next attempt.
Arguments: context, and weight, the place in the order of the hooks.
*/}}
{{- define "nadmit.uninstallMetadata" -}}
name: nadmit-uninstall
labels:
  app.kubernetes.io/name: nadmit-uninstall
  {{- include "nadmit.commonLabels" .context | nindent 2 }}
annotations:
  helm.sh/hook: pre-delete
  helm.sh/hook-weight: {{ .weight | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
