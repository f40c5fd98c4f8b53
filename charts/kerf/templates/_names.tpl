{{/* Names and labels, made as Karpenter's chart makes its own. */}}

{{- define "kerf.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kerf.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := include "kerf.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "kerf.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "kerf.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "kerf.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kerf.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels and annotations of every object; a dict of the root and what this object has besides. */}}
{{- define "kerf.metadata" -}}
labels:
  {{- include "kerf.selectorLabels" .root | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
  {{- with mergeOverwrite (dict) (.root.Values.additionalLabels | default dict) (.labels | default dict) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with mergeOverwrite (dict) (.root.Values.additionalAnnotations | default dict) (.annotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A cloud that is only assumed would give a real cluster nodes without machines. */}}
{{- define "kerf.cloud" -}}
{{- required "settings.cloud: expected aws or kwok, got nothing (hint: aws launches EC2 instances; kwok launches nothing and acts out machines as Node objects, for a test cluster)" .Values.settings.cloud }}
{{- end }}

{{/* No image of Kerf is published, so that there is none to fall back on. */}}
{{- define "kerf.image" -}}
{{- $image := .Values.controller.image }}
{{- $repository := required "controller.image.repository: expected the image to run, got none (hint: no image of Kerf is published; give one that has `kerf` on its PATH)" $image.repository }}
{{- if hasSuffix "karpenter/controller" $repository }}
{{- fail (printf "controller.image.repository: expected an image with `kerf` on its PATH, got Karpenter's, %s" $repository) }}
{{- end }}
{{- if $image.digest }}
{{- printf "%s@%s" $repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $repository (default .Chart.AppVersion $image.tag) }}
{{- end }}
{{- end }}

{{/* The affinity, in which a term about pods without labelSelector means those of this release. */}}
{{- define "kerf.affinity" -}}
{{- $own := dict "matchLabels" (include "kerf.selectorLabels" . | fromYaml) }}
{{- $affinity := deepCopy .Values.affinity }}
{{- range $kind := list "podAffinity" "podAntiAffinity" }}
{{- $terms := get $affinity $kind | default dict }}
{{- range $term := $terms.requiredDuringSchedulingIgnoredDuringExecution }}
{{- if not (hasKey $term "labelSelector") }}{{ $_ := set $term "labelSelector" $own }}{{ end }}
{{- end }}
{{- range $term := $terms.preferredDuringSchedulingIgnoredDuringExecution }}
{{- if not (hasKey $term.podAffinityTerm "labelSelector") }}{{ $_ := set $term.podAffinityTerm "labelSelector" $own }}{{ end }}
{{- end }}
{{- end }}
{{- toYaml $affinity }}
{{- end }}

{{- define "kerf.topologySpreadConstraints" -}}
{{- $own := dict "labelSelector" (dict "matchLabels" (include "kerf.selectorLabels" . | fromYaml)) }}
{{- range .Values.topologySpreadConstraints }}
- {{ toYaml (merge (deepCopy .) $own) | nindent 2 | trim }}
{{- end }}
{{- end }}
