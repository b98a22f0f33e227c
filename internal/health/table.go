package health

import "strings"

// custom returns the rule of a custom resource that does not simply follow the
// conventions; nil when there is none.
func custom(group, kind string) check {
	if c, ok := kinds[group][kind]; ok {
		return c
	}
	if c, ok := kinds[group]["*"]; ok {
		return c
	}
	for _, w := range wildcards {
		if strings.HasSuffix(group, w.suffix) {
			return w.check
		}
	}
	return nil
}

// wildcards are families of groups whose kinds all report alike.
var wildcards = []struct {
	suffix string
	check  check
}{
	{".cnrm.cloud.google.com", ready("Ready", "Updating", "Creating", "Deleting", "DependencyNotReady", "DependencyNotFound")},
	{".services.k8s.aws", ackResource},
	{".crossplane.io", crossplane},
	{".upbound.io", crossplane},
	{".operator.victoriametrics.com", victoria},
}

// kinds are the rules by group and kind; * is every other kind of the group.
var kinds = map[string]map[string]check{
	// Infrastructure that is made elsewhere.
	"pkg.crossplane.io":           {"*": ready("Healthy", "UnhealthyPackageRevision", "UnpackingPackage", "AwaitingVerification")},
	"apiextensions.crossplane.io": {"*": quiet(becoming("Established"))},
	"stacks.crossplane.io":        {"ClusterStackInstall": ready("Ready", "Creating")},
	"pulumi.com":                  {"Stack": pulumi},
	"iammanager.keikoproj.io":     {"Iamrole": phase(phases{path: "state", healthy: "ready", progressing: "creating updating", degraded: "error policynotallowed rolesmaxlimitreached rolenamenotavailable"})},
	"core.gardener.cloud":         {"Shoot": shoot},
	"services.cloud.sap.com":      {"ServiceBinding": ready("Ready", "InProgress", "CreateInProgress", "UpdateInProgress"), "ServiceInstance": ready("Ready", "InProgress", "CreateInProgress", "UpdateInProgress")},
	"networking.gke.io":           {"ManagedCertificate": phase(phases{path: "certificateStatus", healthy: "active", progressing: "provisioning renewalfailed", degraded: "provisioningfailed provisioningfailedpermanently failednotvisible"})},
	"nmstate.io":                  {"NodeNetworkConfigurationPolicy": nmstate},
	"spot.io":                     {"SpotDeployment": running("replicas", "readyReplicas")},
	"karpenter.sh":                {"NodeClaim": becoming("Ready"), "NodePool": quiet(becoming("Ready"))},
	"karpenter.k8s.aws":           {"EC2NodeClass": ready("Ready", "AwaitingReconciliation", "ReconciliationDependenciesNotReady")},
	"trident.netapp.io":           {"TridentBackendConfig": phase(phases{healthy: "bound", progressing: "unbound deleting", degraded: "failed lost"}), "TridentOrchestrator": phase(phases{path: "status", healthy: "installed", progressing: "installing updating uninstalling uninstalled", degraded: "failed error"})},
	"astra.netapp.io": {
		"AppVault": phase(phases{path: "state", healthy: "available", degraded: "error failed"}), "Application": ready("Ready"),
		"Schedule": quiet(ready("Ready")), "ExecHook": quiet(ready("Ready")), "*": phase(phases{path: "state", healthy: "completed", progressing: "pending running snapshotting", degraded: "failed error"}),
	},

	// Clusters.
	"cluster.x-k8s.io": {
		"Cluster": paused("paused", capi("Ready", "Available")), "Machine": capiMachine, "MachineDeployment": paused("paused", capi("Available", "Ready")),
		"MachinePool": capi("Ready", "Available"), "MachineHealthCheck": ready("RemediationAllowed"), "*": capi("Ready", "Available"),
	},
	"addons.cluster.x-k8s.io":       {"ClusterResourceSet": ready("ResourcesApplied", "ClusterMatchFailed")},
	"controlplane.cluster.x-k8s.io": {"*": capi("Ready", "Available")},
	"work.karmada.io":               {"ResourceBinding": karmada, "ClusterResourceBinding": karmada},
	"policy.open-cluster-management.io": {
		"*": phase(phases{path: "compliant", healthy: "compliant", progressing: "pending", degraded: "noncompliant"}),
	},
	"kubevirt.io":     {"VirtualMachine": virtualMachine, "VirtualMachineInstance": failing("Failure", becoming("Ready"))},
	"cdi.kubevirt.io": {"DataVolume": phase(phases{healthy: "succeeded", progressing: "pending waitforfirstconsumer pendingpopulation", suspended: "paused", degraded: "failed error"})},

	// Certificates and secrets.
	"cert-manager.io":      {"Certificate": certificate, "CertificateRequest": ready("Ready", "Pending"), "Issuer": ready("Ready", "Initializing"), "ClusterIssuer": ready("Ready", "Initializing"), "Order": nil},
	"certmanager.k8s.io":   {"Certificate": certificate, "Issuer": ready("Ready"), "ClusterIssuer": ready("Ready")},
	"acme.cert-manager.io": {"Order": phase(phases{path: "state", healthy: "valid", progressing: "pending ready processing", degraded: "invalid expired errored"}), "Challenge": phase(phases{path: "state", healthy: "valid", progressing: "pending ready processing", degraded: "invalid expired errored"})},
	"external-secrets.io": {
		"ExternalSecret": ready("Ready"), "PushSecret": ready("Ready"), "SecretStore": ready("Ready"), "ClusterSecretStore": ready("Ready"), "ClusterExternalSecret": clusterExternalSecret,
	},
	"kubernetes-client.io": {"ExternalSecret": phase(phases{path: "status", healthy: "success", degraded: "error"})},
	"bitnami.com":          {"SealedSecret": sealedSecret},
	"onepassword.com":      {"OnePasswordItem": ready("Ready")},

	// Traffic.
	"gateway.networking.k8s.io": {
		"Gateway": gateway, "GatewayClass": ready("Accepted", "Pending", "Waiting"), "HTTPRoute": route, "GRPCRoute": route, "TLSRoute": route, "TCPRoute": route, "UDPRoute": route,
		"BackendTLSPolicy": policyAncestors,
	},
	"gateway.solo.io":          {"*": gloo},
	"gloo.solo.io":             {"*": gloo},
	"projectcontour.io":        {"HTTPProxy": phase(phases{path: "currentStatus", healthy: "valid", progressing: "notreconciled", degraded: "invalid orphaned"}), "ExtensionService": ready("Valid")},
	"route.openshift.io":       {"Route": openshiftRoute},
	"operator.openshift.io":    {"IngressController": failing("Degraded", becoming("Available"))},
	"microgateway.airlock.com": {"*": quiet(ready("Ready"))},
	"proclaim.dogmatiq.io":     {"DNSSDServiceInstance": adopted},
	"install.istio.io":         {"IstioOperator": phase(phases{path: "status", healthy: "healthy", progressing: "reconciling updating none", degraded: "error action_required"})},
	"kiali.io":                 {"Kiali": ansible},

	// Delivery and workloads.
	"apps.openshift.io":  {"DeploymentConfig": deploymentConfig},
	"apps.kruise.io":     {"CloneSet": paused("updateStrategy.paused", kruise), "StatefulSet": paused("updateStrategy.rollingUpdate.paused", kruise), "DaemonSet": kruiseDaemonSet, "BroadcastJob": phase(phases{healthy: "completed", progressing: "running", suspended: "paused", degraded: "failed"}), "AdvancedCronJob": paused("paused", quiet(becoming("Ready")))},
	"rollouts.kruise.io": {"Rollout": kruiseRollout},
	"game.kruise.io":     {"GameServer": phase(phases{path: "currentState", healthy: "ready", progressing: "creating notready updating preupdate predelete deleting", degraded: "crash unknown"}), "GameServerSet": running("replicas", "readyReplicas")},
	"flagger.app":        {"Canary": phase(phases{healthy: "initialized succeeded", progressing: "initializing waiting waitingpromotion progressing promoting finalising", suspended: "terminating terminated", degraded: "failed"})},
	"argoproj.io": {
		"Rollout": rollout, "AnalysisRun": phase(phases{healthy: "successful", progressing: "pending running", degraded: "failed error inconclusive"}), "Experiment": phase(phases{healthy: "successful", progressing: "pending running", degraded: "failed error inconclusive"}),
		"CronWorkflow": paused("suspend", failing("SubmissionError SpecError", quiet(healthyAlways))), "EventBus": all(), "EventSource": all(), "Sensor": all(),
	},
	"promoter.argoproj.io":    {"ChangeTransferPolicy": ready("Ready"), "*": ready("Ready")},
	"lifecycle.keptn.sh":      {"*": phase(phases{path: "status", healthy: "succeeded", progressing: "pending progressing unknown", degraded: "failed cancelled deprecated"})},
	"metrics.keptn.sh":        {"Analysis": phase(phases{path: "state", healthy: "completed", progressing: "pending progressing", degraded: "failed"}), "KeptnMetric": keptnMetric},
	"serving.knative.dev":     {"Service": ready("Ready"), "*": ready("Ready")},
	"operator.knative.dev":    {"*": becoming("Ready")},
	"serving.kserve.io":       {"InferenceService": inferenceService},
	"camel.apache.org":        {"Integration": phase(phases{healthy: "running", progressing: "initialization waiting-for-platform building-kit resolving-kit building deploying", degraded: "error unknown"}), "IntegrationPlatform": phase(phases{healthy: "ready", progressing: "creating", degraded: "error duplicate"})},
	"core.spinkube.dev":       {"SpinApp": spinApp},
	"openfaas.com":            {"Function": ready("Ready", "Deploying")},
	"tower.ansible.com":       {"AnsibleJob": ansibleJob},
	"operators.coreos.com":    {"Subscription": subscription, "ClusterServiceVersion": phase(phases{healthy: "succeeded", progressing: "pending installready installing replacing deleting", degraded: "failed unknown"}), "InstallPlan": phase(phases{healthy: "complete", progressing: "planning installing", suspended: "requiresapproval", degraded: "failed"})},
	"keda.sh":                 {"ScaledObject": scaler, "ScaledJob": scaler},
	"kyverno.io":              {"Policy": ready("Ready"), "ClusterPolicy": ready("Ready")},
	"snapshot.storage.k8s.io": {"VolumeSnapshot": snapshot, "VolumeSnapshotContent": snapshot},
	"objectbucket.io":         {"ObjectBucketClaim": phase(phases{healthy: "bound", progressing: "pending released", degraded: "failed"})},

	// Observation.
	"monitoring.coreos.com":                          {"Prometheus": prometheus, "Alertmanager": prometheus, "ThanosRuler": prometheus, "PrometheusAgent": prometheus},
	"grafana.integreatly.org":                        {"Grafana": grafana, "*": grafanaItem},
	"grafana-org-operator.kubitus-project.gitlab.io": {"*": ready("Ready")},
	"opentelemetry.io":                               {"OpenTelemetryCollector": paused("paused", healthyAlways)},
	"jaegertracing.io":                               {"Jaeger": phase(phases{healthy: "running", progressing: "pending", degraded: "failed"})},
	"datadoghq.com":                                  {"DatadogMetric": failing("Error", becoming("Valid"))},
	"coralogix.com":                                  {"*": quiet(ready("RemoteSynced", "Pending"))},
	"core.humio.com":                                 {"*": phase(phases{path: "state", healthy: "running exists", progressing: "pending restarting upgrading repairing creating", degraded: "configerror unknown notfound failed"})},
	"operator.victoriametrics.com":                   {"*": victoria},

	// Data.
	"acid.zalan.do":                  {"postgresql": phase(phases{path: "PostgresClusterStatus", healthy: "running", progressing: "creating updating", degraded: "createfailed updatefailed syncfailed addfailed deletefailed invalid"})},
	"postgresql.cnpg.io":             {"Cluster": cnpg},
	"k8s.mariadb.com":                {"MariaDB": paused("suspend", ready("Ready", "Initializing", "StatefulSetNotReady", "RestoreNotComplete", "SwitchPrimary", "GaleraNotReady", "Updating", "PendingUpdate")), "Backup": failing("Failed", becoming("Complete")), "SqlJob": failing("Failed", becoming("Complete")), "*": ready("Ready", "Creating")},
	"mariadb.mmontes.io":             {"MariaDB": ready("Ready", "Initializing", "RestoreNotComplete")},
	"psmdb.percona.com":              {"PerconaServerMongoDB": paused("pause", perconaState)},
	"pxc.percona.com":                {"PerconaXtraDBCluster": paused("pause", perconaState)},
	"db.atlasgo.io":                  {"*": ready("Ready", "Reconciling", "GettingDevDB", "ProtectedFlow", "Applying")},
	"elasticsearch.k8s.elastic.co":   {"Elasticsearch": elastic},
	"beat.k8s.elastic.co":            {"Beat": elastic},
	"logstash.k8s.elastic.co":        {"Logstash": elastic},
	"kibana.k8s.elastic.co":          {"Kibana": elastic},
	"apm.k8s.elastic.co":             {"ApmServer": elastic},
	"clickhouse.altinity.com":        {"ClickHouseInstallation": altinity},
	"clickhouse-keeper.altinity.com": {"ClickHouseKeeperInstallation": altinity},
	"ceph.rook.io":                   {"CephCluster": ceph, "*": phase(phases{healthy: "ready connected", progressing: "progressing connecting deleting updating", degraded: "failure"})},
	"cassandra.rook.io":              {"Cluster": rackMembers},
	"ocs.openshift.io":               {"StorageCluster": failing("Degraded", phase(phases{healthy: "ready", progressing: "progressing", degraded: "error not-ready"}))},
	"minio.min.io":                   {"Tenant": tenant},
	"solr.apache.org":                {"SolrCloud": solr},
	"zookeeper.pravega.io":           {"ZookeeperCluster": zookeeper},
	"rabbitmq.com":                   {"RabbitmqCluster": rabbit, "*": ready("Ready")},
	"kafka.banzaicloud.io":           {"KafkaCluster": phase(phases{path: "state", healthy: "clusterrunning", progressing: "clusterreconciling clusterrollingupgrading", degraded: "clustererror"})},
	"kafka.strimzi.io":               {"KafkaTopic": annotated("strimzi.io/pause-reconciliation", "true", strimzi), "*": annotated("strimzi.io/pause-reconciliation", "true", strimzi)},
	"platform.confluent.io":          {"*": phase(phases{healthy: "running created", progressing: "provisioning updating creating", degraded: "failed error"})},
	"k8s.keycloak.org":               {"Keycloak": failing("HasErrors", becoming("Ready"))},
	"sparkoperator.k8s.io":           {"SparkApplication": spark},
	"flink.apache.org":               {"FlinkDeployment": flink, "FlinkSessionJob": flink},

	// Pipelines and others.
	"numaflow.numaproj.io":    {"*": numa},
	"numaplane.numaproj.io":   {"*": numa},
	"apps.3scale.net":         {"APIManager": becoming("Available")},
	"capabilities.3scale.net": {"*": failing("Invalid Failed Orphan", threescale)},
}
