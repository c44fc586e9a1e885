{{- define "gardenlet.labels" -}}
app: gardener
role: gardenlet
chart: {{ .Chart.Name }}-{{ .Chart.Version }}
release: {{ .Release.Name }}
heritage: {{ .Release.Service }}
{{- end -}}

{{- define "gardenlet.config" -}}
{{- if .Values.configText -}}
{{ .Values.configText }}
{{- else -}}
{{- $config := deepCopy .Values.config -}}
{{- if dig "gardenClientConnection" "bootstrapKubeconfig" "kubeconfig" "" $config -}}
{{- $_ := unset $config.gardenClientConnection.bootstrapKubeconfig "kubeconfig" -}}
{{- end -}}
{{ toYaml $config }}
{{- end -}}
{{- end -}}

{{- define "gardenlet.config.name" -}}
gardenlet-configmap-{{ include "gardenlet.config" . | sha256sum | trunc 8 }}
{{- end -}}

{{- define "gardenlet.images.name" -}}
gardenlet-imagevector-overwrite-{{ .Values.imageVectorOverwrite | sha256sum | trunc 8 }}
{{- end -}}

{{- define "gardenlet.component-images.name" -}}
gardenlet-imagevector-overwrite-components-{{ .Values.componentImageVectorOverwrites | sha256sum | trunc 8 }}
{{- end -}}

{{- define "gardenlet.reference" -}}
reference.resources.gardener.cloud/configmap-{{ . | sha256sum | trunc 8 }}: {{ . }}
{{- end -}}

{{- define "gardenlet.references" -}}
{{ include "gardenlet.reference" (include "gardenlet.config.name" .) }}
{{- if .Values.imageVectorOverwrite }}
{{ include "gardenlet.reference" (include "gardenlet.images.name" .) }}
{{- end }}
{{- if .Values.componentImageVectorOverwrites }}
{{ include "gardenlet.reference" (include "gardenlet.component-images.name" .) }}
{{- end }}
{{- end -}}

{{- define "gardenlet.image" -}}
{{- with .Values.image -}}
{{- if .ref }}{{ .ref }}{{ else }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else if .tag }}:{{ .tag }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "gardenlet.health-port" -}}
{{ dig "server" "healthProbes" "port" 0 .Values.config | int | default 2728 }}
{{- end -}}

{{- define "gardenlet.metrics-port" -}}
{{ dig "server" "metrics" "port" 0 .Values.config | int | default 2729 }}
{{- end -}}
