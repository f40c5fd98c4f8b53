{{- /* Written by tools/generate_chart.py; do not edit. */}}

{{- define "kerf.settings" -}}
{{- with .Values.settings.strategy }}
- --strategy={{ . }}
{{- end }}
{{- with .Values.settings.follow }}
- --follow={{ . }}
{{- end }}
{{- with .Values.settings.preferencePolicy }}
- --preference-policy={{ . }}
{{- end }}
{{- with .Values.settings.minValuesPolicy }}
- --min-values-policy={{ . }}
{{- end }}
{{- with .Values.settings.defaultSpread }}
- --default-spread={{ . }}
{{- end }}
{{- with .Values.settings.spotToSpotConsolidation }}
- --spot-to-spot-consolidation={{ . }}
{{- end }}
{{- with .Values.settings.nodeRepair }}
- --node-repair={{ . }}
{{- end }}
{{- with .Values.settings.batchIdleDuration }}
- --batch-idle={{ . }}
{{- end }}
{{- with .Values.settings.batchMaxDuration }}
- --batch-max={{ . }}
{{- end }}
{{- with .Values.settings.replan }}
- --replan={{ . }}
{{- end }}
{{- with .Values.settings.launchDeadline }}
- --launch-deadline={{ . }}
{{- end }}
{{- with .Values.settings.registrationDeadline }}
- --registration-deadline={{ . }}
{{- end }}
{{- with .Values.settings.devicesDeadline }}
- --devices-deadline={{ . }}
{{- end }}
{{- with .Values.settings.disruptionPoll }}
- --disruption-poll={{ . }}
{{- end }}
{{- with .Values.settings.repack }}
- --repack={{ . }}
{{- end }}
{{- with .Values.settings.validation }}
- --validation={{ . }}
{{- end }}
{{- with .Values.settings.settled }}
- --settled={{ . }}
{{- end }}
{{- with .Values.settings.pinDeadline }}
- --pin-deadline={{ . }}
{{- end }}
{{- with .Values.settings.instancePoll }}
- --instance-poll={{ . }}
{{- end }}
{{- with .Values.settings.orphanAge }}
- --orphan-age={{ . }}
{{- end }}
{{- with .Values.settings.drainPoll }}
- --drain-poll={{ . }}
{{- end }}
{{- with .Values.settings.usagePoll }}
- --usage-poll={{ . }}
{{- end }}
{{- with .Values.settings.usageCheckpoint }}
- --usage-checkpoint={{ . }}
{{- end }}
{{- with .Values.settings.soldOut }}
- --sold-out={{ . }}
{{- end }}
{{- with .Values.settings.soldOutMost }}
- --sold-out-most={{ . }}
{{- end }}
{{- with .Values.settings.backOff }}
- --back-off={{ . }}
{{- end }}
{{- with .Values.settings.backOffMost }}
- --back-off-most={{ . }}
{{- end }}
{{- with .Values.settings.mostShapes }}
- --most-shapes={{ . }}
{{- end }}
{{- with .Values.settings.pluginNamespaces }}
- --plugin-namespaces={{ . }}
{{- end }}
{{- end }}

{{- define "kerf.ignored" -}}
{{- if hasKey .Values.controller "sidecarVolumeMounts" }}
controller.sidecarVolumeMounts: give the mounts in controller.sidecarContainer
{{- end }}
{{- if hasKey .Values "logConfig" }}
logConfig: logs go to standard error
{{- end }}
{{- if hasKey .Values "logErrorOutputPaths" }}
logErrorOutputPaths: logs go to standard error
{{- end }}
{{- if hasKey .Values "logOutputPaths" }}
logOutputPaths: logs go to standard error
{{- end }}
{{- if hasKey .Values.serviceMonitor "sampleLimit" }}
serviceMonitor.sampleLimit: limit the samples in your Prometheus
{{- end }}
{{- if hasKey .Values.settings "amiRefreshInterval" }}
settings.amiRefreshInterval: of Karpenter's AWS provider; Kerf has no such setting
{{- end }}
{{- if hasKey .Values.settings "assumeRoleARN" }}
settings.assumeRoleARN: of Karpenter's AWS provider; Kerf has no such setting
{{- end }}
{{- if hasKey .Values.settings "assumeRoleDuration" }}
settings.assumeRoleDuration: of Karpenter's AWS provider; Kerf has no such setting
{{- end }}
{{- if hasKey .Values.settings "awsFeatureGates" }}
settings.awsFeatureGates: of Karpenter's AWS provider; Kerf has no such setting
{{- end }}
{{- if hasKey .Values.settings "clusterCABundle" }}
settings.clusterCABundle: EKS says it: Kerf calls eks:DescribeCluster
{{- end }}
{{- if hasKey .Values.settings "clusterEndpoint" }}
settings.clusterEndpoint: EKS says it: Kerf calls eks:DescribeCluster
{{- end }}
{{- if hasKey .Values.settings "disableClusterStateObservability" }}
settings.disableClusterStateObservability: metrics and events are always there
{{- end }}
{{- if hasKey .Values.settings "disableDryRun" }}
settings.disableDryRun: of Karpenter's AWS provider; settings.dryRun is something else
{{- end }}
{{- if hasKey .Values.settings "eksControlPlane" }}
settings.eksControlPlane: of Karpenter's AWS provider; Kerf has no such setting
{{- end }}
{{- if hasKey .Values.settings "enableDRA" }}
settings.enableDRA: claims of resource.k8s.io are not planned for
{{- end }}
{{- if hasKey .Values.settings "enableZonalShift" }}
settings.enableZonalShift: of Karpenter's AWS provider; Kerf has no such setting
{{- end }}
{{- if hasKey .Values.settings "featureGates" }}
settings.featureGates: Kerf has no gates; NodeOverlay is always on
{{- end }}
{{- if hasKey .Values.settings "ignoreDRARequests" }}
settings.ignoreDRARequests: claims of resource.k8s.io are not planned for
{{- end }}
{{- if hasKey .Values.settings "isolatedVPC" }}
settings.isolatedVPC: of Karpenter's AWS provider; Kerf has no such setting
{{- end }}
{{- if hasKey .Values.settings "reservedENIs" }}
settings.reservedENIs: of Karpenter's AWS provider; Kerf has no such setting
{{- end }}
{{- if hasKey .Values.settings "subnetRefreshInterval" }}
settings.subnetRefreshInterval: of Karpenter's AWS provider; Kerf has no such setting
{{- end }}
{{- if hasKey .Values.settings "vmMemoryOverheadPercent" }}
settings.vmMemoryOverheadPercent: of Karpenter's AWS provider; Kerf has no such setting
{{- end }}
{{- if hasKey .Values "webhook" }}
webhook: Kerf has no webhook
{{- end }}
{{- if and .Values.settings.clusterName (ne .Values.settings.cloud "aws") }}
settings.clusterName: of Karpenter's AWS provider; it needs settings.cloud=aws
{{- end }}
{{- if and .Values.settings.interruptionQueue (ne .Values.settings.cloud "aws") }}
settings.interruptionQueue: of Karpenter's AWS provider; it needs settings.cloud=aws
{{- end }}
{{- end }}
