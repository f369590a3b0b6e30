{{/*
The objects of nadmit have fixed names: the binary finds its webhook configurations, its Secrets, its Lease and its policy by name,
and its permissions are bound to these names. There is one nadmit in a cluster, so nothing here depends on the name of the release.
*/}}

{{/* Name and version of the chart, as a label may have them. */}}
{{- define "nadmit.chart" -}}
{{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The labels of all objects but their name. */}}
{{- define "nadmit.commonLabels" -}}
app.kubernetes.io/part-of: nadmit
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ include "nadmit.chart" . | quote }}
{{- end }}

{{/* The labels of the objects that stay. */}}
{{- define "nadmit.labels" -}}
{{- include "nadmit.check" . -}}
{{ include "nadmit.selectorLabels" . }}
{{ include "nadmit.commonLabels" . }}
{{- end }}

{{/* The labels by which the pods are found. A Deployment never changes them. */}}
{{- define "nadmit.selectorLabels" -}}
app.kubernetes.io/name: nadmit
{{- end }}

{{/*
The labels of a pod: those of the chart win, and no label changes with the version of the chart.
Arguments: context, and name, the value of app.kubernetes.io/name.
*/}}
{{- define "nadmit.podLabels" -}}
{{- $own := dict "app.kubernetes.io/name" .name "app.kubernetes.io/part-of" "nadmit" "app.kubernetes.io/instance" .context.Release.Name }}
{{- toYaml (merge $own (default dict .context.Values.podLabels)) }}
{{- end }}

{{/* The reference of the image. */}}
{{- define "nadmit.image" -}}
{{- with .Values.image.registry }}{{ . }}/{{ end }}
{{- .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}
{{- else }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* The name of the replicas' ServiceAccount. */}}
{{- define "nadmit.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default "nadmit" }}
{{- end }}

{{/* What all pods have in common: where they run, and what the pod security standard `restricted` asks for. */}}
{{- define "nadmit.podSpec" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
securityContext:
  runAsNonRoot: true
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{/* What all containers have in common. */}}
{{- define "nadmit.container" -}}
image: {{ include "nadmit.image" . | quote }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
  readOnlyRootFilesystem: true
{{- end }}

{{/* The text of the policy. */}}
{{- define "nadmit.policy" -}}
{{- if kindIs "string" .Values.policy }}
{{- .Values.policy }}
{{- else }}
{{- toYaml (default dict .Values.policy) }}
{{- end }}
{{- end }}

{{/* Whether the policy judges pods, so that nadmit needs the right to read them. A bare `off` is false in YAML. */}}
{{- define "nadmit.judgesPods" -}}
{{- $policy := include "nadmit.policy" . | fromYaml }}
{{- if has (get $policy "pods" | toString) (list "audit" "warn") }}true{{ end }}
{{- end }}

{{/* An object of files/, with the labels of the chart. Arguments: context, and path. */}}
{{- define "nadmit.fromFile" -}}
{{- $object := .context.Files.Get .path | fromYaml }}
{{- $_ := set $object.metadata "labels" (include "nadmit.labels" .context | fromYaml) }}
{{- toYaml $object }}
{{- end }}

{{/* Values that the schema cannot reject, and those of the chart of nadmit 0.1.0, with what to write instead. */}}
{{- define "nadmit.check" -}}
{{- $advice := "In an upgrade, use --reset-then-reuse-values instead of --reuse-values." }}
{{- if kindIs "string" .Values.image }}
{{- fail (printf "image is a text (%q), as in the chart of nadmit 0.1.0: set image.repository, and image.tag or image.digest. %s" .Values.image $advice) }}
{{- end }}
{{- if kindIs "string" .Values.service }}
{{- fail (printf "service is a text (%q), as in the chart of nadmit 0.1.0: set service.name. %s" .Values.service $advice) }}
{{- end }}
{{- if kindIs "bool" .Values.monitoring }}
{{- fail (printf "monitoring is %t, as in the chart of nadmit 0.1.0: set monitoring.serviceMonitor.enabled, monitoring.prometheusRule.enabled and monitoring.dashboard.enabled. %s" .Values.monitoring $advice) }}
{{- end }}
{{- if and .Values.clientName (not .Values.clientCa) }}
{{- fail "clientName needs clientCa: without a CA no client certificate is required (--set-file clientCa=ca.crt)" }}
{{- end }}
{{- if and .Values.monitoring.serviceMonitor.enabled (not .Values.monitoring.metricsService.enabled) }}
{{- fail "monitoring.serviceMonitor needs monitoring.metricsService: set monitoring.metricsService.enabled=true" }}
{{- end }}
{{- if kindIs "string" .Values.policy }}
{{- with get (fromYaml .Values.policy) "Error" }}
{{- fail (printf "policy is a text that is not a YAML object: %s" .) }}
{{- end }}
{{- end }}
{{- end }}
