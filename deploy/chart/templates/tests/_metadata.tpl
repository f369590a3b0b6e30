{{/*
The metadata of the objects of `helm test`. A failed pod is kept for its log until the next test.
Arguments: context, and weight, the place in the order of the hooks.
*/}}
{{- define "nadmit.testMetadata" -}}
name: nadmit-test
namespace: {{ .context.Release.Namespace | quote }}
labels:
  app.kubernetes.io/name: nadmit-test
  {{- include "nadmit.commonLabels" .context | nindent 2 }}
annotations:
  helm.sh/hook: test
  helm.sh/hook-weight: {{ .weight | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
