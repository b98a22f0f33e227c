package health_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/health"
)

func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// assessment is one object in short form: its kind and the fields that matter.
type assessment struct {
	reason string
	kind   string
	object string
	status rutter.HealthState
	// says is a part of the message.
	says string
}

func run(t *testing.T, tests []assessment) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.kind+": "+tt.reason, func(t *testing.T) {
			t.Parallel()
			version, kind := "v1", tt.kind
			if i := strings.LastIndex(tt.kind, "/"); i >= 0 {
				version, kind = tt.kind[:i], tt.kind[i+1:]
			}
			u := parse(t, tt.object)
			if u.Object == nil {
				u.Object = map[string]any{}
			}
			u.SetAPIVersion(version)
			u.SetKind(kind)
			got := health.Of(u)
			if got.Status != tt.status || !strings.Contains(got.Message, tt.says) {
				t.Errorf("got %s %q, want %s with %q", got.Status, got.Message, tt.status, tt.says)
			}
		})
	}
}

func TestWorkloads(t *testing.T) {
	t.Parallel()
	const deployment, statefulSet, daemonSet, replicaSet = "apps/v1/Deployment", "apps/v1/StatefulSet", "apps/v1/DaemonSet", "apps/v1/ReplicaSet"
	run(t, []assessment{
		{"just created", deployment, `{metadata: {generation: 1}, spec: {replicas: 2}}`, rutter.Progressing, "generation 1, observed 0"},
		{"paused", deployment, `{metadata: {generation: 2}, spec: {paused: true}, status: {observedGeneration: 1}}`, rutter.Suspended, "paused"},
		{"behind, although all numbers are right", deployment, `{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}`, rutter.Progressing, "observed 1"},
		{"deadline", deployment, `{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: has timed out}]}}`, rutter.Degraded, "ProgressDeadlineExceeded: has timed out"},
		{"updating", deployment, `{spec: {replicas: 5}, status: {replicas: 6, updatedReplicas: 3, availableReplicas: 5}}`, rutter.Progressing, "3 of 5 replicas are updated"},
		{"old ones go", deployment, `{spec: {replicas: 5}, status: {replicas: 7, updatedReplicas: 5, availableReplicas: 5}}`, rutter.Progressing, "2 old replicas"},
		{"not available", deployment, `{spec: {replicas: 5}, status: {replicas: 5, updatedReplicas: 5, availableReplicas: 4}}`, rutter.Progressing, "4 of 5 updated replicas are available"},
		{"well", deployment, `{spec: {replicas: 5}, status: {replicas: 5, updatedReplicas: 5, availableReplicas: 5}}`, rutter.Healthy, "5 of 5"},
		{"none wanted", deployment, `{spec: {replicas: 0}, status: {observedGeneration: 1}, metadata: {generation: 1}}`, rutter.Healthy, "0 of 0"},
		{"replicas not given are one", deployment, `{status: {replicas: 0}}`, rutter.Progressing, "0 of 1"},
		{"an old version can't be read", "apps/v1beta1/Deployment", `{}`, rutter.HealthUnknown, "v1beta1"},
		{"being deleted", deployment, `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [a/b]}}`, rutter.Progressing, "Pending deletion, held by a/b"},

		{"never observed", statefulSet, `{spec: {replicas: 0}}`, rutter.Progressing, "observe"},
		{"behind", statefulSet, `{metadata: {generation: 2}, status: {observedGeneration: 1, readyReplicas: 1}}`, rutter.Progressing, "generation 2"},
		{"not ready", statefulSet, `{spec: {replicas: 3}, status: {observedGeneration: 1, readyReplicas: 2}}`, rutter.Progressing, "2 of 3 replicas are ready"},
		{"partition", statefulSet, `{spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}, status: {observedGeneration: 1, readyReplicas: 3, updatedReplicas: 1}}`, rutter.Progressing, "1 of 2 replicas are updated (partition 1)"},
		{"partition done, revisions differ", statefulSet, `{spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}, status: {observedGeneration: 1, readyReplicas: 3, updatedReplicas: 2, updateRevision: b, currentRevision: a}}`, rutter.Healthy, ""},
		{"on delete", statefulSet, `{spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, readyReplicas: 1, updateRevision: b, currentRevision: a}}`, rutter.Healthy, "deleted"},
		{"rolling without a block, revisions differ", statefulSet, `{spec: {updateStrategy: {type: RollingUpdate}}, status: {observedGeneration: 1, readyReplicas: 1, updateRevision: b, currentRevision: a}}`, rutter.Progressing, "revision b"},
		{"well", statefulSet, `{status: {observedGeneration: 1, readyReplicas: 1, updateRevision: a, currentRevision: a}}`, rutter.Healthy, ""},

		{"behind", daemonSet, `{metadata: {generation: 1}}`, rutter.Progressing, "observed 0"},
		{"on delete", daemonSet, `{spec: {updateStrategy: {type: OnDelete}}, status: {desiredNumberScheduled: 3}}`, rutter.Healthy, "3 nodes"},
		{"updating", daemonSet, `{status: {desiredNumberScheduled: 3, updatedNumberScheduled: 1}}`, rutter.Progressing, "1 of 3"},
		{"not available", daemonSet, `{status: {desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2}}`, rutter.Progressing, "2 of 3"},
		{"well", daemonSet, `{status: {desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}}`, rutter.Healthy, "3 of 3"},

		{"behind", replicaSet, `{metadata: {generation: 3}, status: {observedGeneration: 2}}`, rutter.Progressing, "generation 3"},
		{"fails", replicaSet, `{status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: quota}]}}`, rutter.Degraded, "FailedCreate: quota"},
		{"failed once", replicaSet, `{status: {availableReplicas: 1, conditions: [{type: ReplicaFailure, status: "False"}]}}`, rutter.Healthy, ""},
		{"not available", replicaSet, `{spec: {replicas: 2}, status: {availableReplicas: 1}}`, rutter.Progressing, "1 of 2"},
	})
}

func TestBatch(t *testing.T) {
	t.Parallel()
	const job, cron = "batch/v1/Job", "batch/v1/CronJob"
	run(t, []assessment{
		{"just created", job, `{}`, rutter.Progressing, "0 pods active"},
		{"runs", job, `{status: {active: 2, succeeded: 1}}`, rutter.Progressing, "2 pods active, 1 succeeded"},
		{"complete", job, `{status: {conditions: [{type: Complete, status: "True"}]}}`, rutter.Healthy, ""},
		{"failed", job, `{status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: too often}]}}`, rutter.Degraded, "BackoffLimitExceeded: too often"},
		{"suspended", job, `{status: {conditions: [{type: Suspended, status: "True", reason: JobSuspended}]}}`, rutter.Suspended, "JobSuspended"},
		{"resumed", job, `{status: {active: 1, conditions: [{type: Suspended, status: "False"}]}}`, rutter.Healthy, "resumed"},
		{"about to fail", job, `{status: {conditions: [{type: FailureTarget, status: "True"}]}}`, rutter.Progressing, ""},

		{"suspended (B41)", cron, `{spec: {suspend: true}}`, rutter.Healthy, "Suspended"},
		{"no status", cron, `{}`, rutter.Progressing, ""},
		{"never due", cron, `{status: {}}`, rutter.Healthy, "not been due"},
		{"runs", cron, `{status: {active: [{name: a}], lastScheduleTime: "2026-01-02T00:00:00Z", lastSuccessfulTime: "2026-01-01T00:00:00Z"}}`, rutter.Healthy, "1 jobs"},
		{"never succeeded", cron, `{status: {lastScheduleTime: "2026-01-02T00:00:00Z"}}`, rutter.Healthy, "not succeeded yet"},
		{"the last run failed", cron, `{status: {lastScheduleTime: "2026-01-02T00:00:00Z", lastSuccessfulTime: "2026-01-01T00:00:10Z"}}`, rutter.Degraded, "did not succeed"},
		{"the last run succeeded", cron, `{status: {lastScheduleTime: "2026-01-02T00:00:00Z", lastSuccessfulTime: "2026-01-02T00:00:10Z"}}`, rutter.Healthy, "succeeded"},
	})
}

func TestPod(t *testing.T) {
	t.Parallel()
	const pod = "Pod"
	run(t, []assessment{
		{"no status", pod, `{spec: {restartPolicy: Always}}`, rutter.HealthUnknown, `phase ""`},
		{"pending", pod, `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", message: no nodes}]}}`, rutter.Progressing, "no nodes"},
		{"image can't be pulled", pod, `{spec: {restartPolicy: Always}, status: {phase: Pending, containerStatuses: [{name: c, state: {waiting: {reason: ErrImagePull, message: not found}}}]}}`, rutter.Degraded, "c: ErrImagePull: not found"},
		{"crash loop", pod, `{spec: {restartPolicy: Always}, status: {phase: Running, containerStatuses: [{name: c, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, rutter.Degraded, "CrashLoopBackOff"},
		{"config error", pod, `{spec: {restartPolicy: Always}, status: {phase: Pending, containerStatuses: [{name: c, state: {waiting: {reason: CreateContainerConfigError}}}]}}`, rutter.Degraded, "ConfigError"},
		{"only creating", pod, `{spec: {restartPolicy: Always}, status: {phase: Pending, containerStatuses: [{name: c, state: {waiting: {reason: ContainerCreating}}}]}}`, rutter.Progressing, "pending"},
		{"init containers are not read", pod, `{spec: {restartPolicy: Always}, status: {phase: Pending, initContainerStatuses: [{name: c, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, rutter.Progressing, ""},
		{"never restarted, the same reason", pod, `{spec: {restartPolicy: Never}, status: {phase: Pending, containerStatuses: [{name: c, state: {waiting: {reason: ErrImagePull}}}]}}`, rutter.Progressing, ""},
		{"never restarted, but asked to be judged so", pod, `{metadata: {annotations: {argocd.argoproj.io/ignore-restart-policy: "true"}}, spec: {restartPolicy: Never}, status: {phase: Pending, containerStatuses: [{name: c, state: {waiting: {reason: ErrImagePull}}}]}}`, rutter.Degraded, ""},
		{"a hook can't ask for that", pod, `{metadata: {annotations: {argocd.argoproj.io/ignore-restart-policy: "true", argocd.argoproj.io/hook: Sync}}, spec: {restartPolicy: Never}, status: {phase: Running}}`, rutter.Progressing, "will end"},
		{"succeeded", pod, `{status: {phase: Succeeded}}`, rutter.Healthy, ""},
		{"failed with words", pod, `{status: {phase: Failed, message: evicted}}`, rutter.Degraded, "evicted"},
		{"failed by a container", pod, `{status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 0}}}, {name: b, state: {terminated: {exitCode: 3}}}]}}`, rutter.Degraded, "container b: exit code 3"},
		{"out of memory", pod, `{status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}`, rutter.Degraded, "OOMKilled"},
		{"ready", pod, `{spec: {restartPolicy: Always}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, rutter.Healthy, "ready"},
		{"restarted", pod, `{spec: {restartPolicy: Always}, status: {phase: Running, containerStatuses: [{name: c, lastState: {terminated: {exitCode: 1}}}]}}`, rutter.Degraded, `"c" was restarted`},
		{"not ready yet", pod, `{spec: {restartPolicy: Always}, status: {phase: Running, conditions: [{type: Ready, status: "False", message: probe}]}}`, rutter.Progressing, "probe"},
		{"runs to an end", pod, `{spec: {restartPolicy: OnFailure}, status: {phase: Running}}`, rutter.Progressing, "will end"},
		{"a phase that isn't known", pod, `{status: {phase: Odd}}`, rutter.HealthUnknown, "Odd"},
	})
}

func TestCluster(t *testing.T) {
	t.Parallel()
	const ingress, hpa, crd = "networking.k8s.io/v1/Ingress", "autoscaling/v2/HorizontalPodAutoscaler", "apiextensions.k8s.io/v1/CustomResourceDefinition"
	run(t, []assessment{
		{"no address", ingress, `{}`, rutter.Progressing, "ingress controller"},
		{"an address", ingress, `{status: {loadBalancer: {ingress: [{}]}}}`, rutter.Healthy, "1 load"},
		{"the old group", "extensions/v1beta1/Ingress", `{}`, rutter.Progressing, ""},
		{"cluster IP", "Service", `{spec: {type: ClusterIP}}`, rutter.Healthy, ""},
		{"no address", "Service", `{spec: {type: LoadBalancer}}`, rutter.Progressing, "address"},
		{"an address", "Service", `{spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}`, rutter.Healthy, ""},
		{"pending until a pod comes", "PersistentVolumeClaim", `{status: {phase: Pending}}`, rutter.Healthy, "when the first pod uses it"},
		{"pending at a provisioner", "PersistentVolumeClaim", `{metadata: {annotations: {volume.kubernetes.io/storage-provisioner: csi}}, status: {phase: Pending}}`, rutter.Progressing, "csi makes its volume"},
		{"pending at a volume", "PersistentVolumeClaim", `{spec: {volumeName: v}, status: {phase: Pending}}`, rutter.Progressing, "not bound to volume v"},
		{"bound", "PersistentVolumeClaim", `{spec: {volumeName: v}, status: {phase: Bound}}`, rutter.Healthy, "volume v"},
		{"lost", "PersistentVolumeClaim", `{status: {phase: Lost}}`, rutter.Degraded, ""},
		{"no phase", "PersistentVolumeClaim", `{}`, rutter.HealthUnknown, ""},
		{"active", "Namespace", `{status: {phase: Active}}`, rutter.Healthy, ""},
		{"terminating", "Namespace", `{status: {phase: Terminating}}`, rutter.Progressing, "being deleted"},
		{"available", "apiregistration.k8s.io/v1/APIService", `{status: {conditions: [{type: Available, status: "True"}]}}`, rutter.Healthy, ""},
		{"not available", "apiregistration.k8s.io/v1/APIService", `{status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints}]}}`, rutter.Progressing, "MissingEndpoints"},
		{"no condition", "apiregistration.k8s.io/v1/APIService", `{}`, rutter.Progressing, ""},

		{"no conditions", hpa, `{}`, rutter.Progressing, "Waiting to Autoscale"},
		{"able", hpa, `{status: {conditions: [{type: AbleToScale, status: "True", reason: ReadyForNewScale}]}}`, rutter.Healthy, "ReadyForNewScale"},
		{"limited", hpa, `{status: {conditions: [{type: ScalingLimited, status: "True", reason: TooManyReplicas}]}}`, rutter.Healthy, "TooManyReplicas"},
		{"can't read metrics, although able", hpa, `{status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "False", reason: FailedGetResourceMetric, message: no metrics}]}}`, rutter.Degraded, "no metrics"},
		{"inactive for a harmless reason", hpa, `{status: {conditions: [{type: ScalingActive, status: "False", reason: ScalingDisabled}]}}`, rutter.Progressing, ""},
		{"can't find its target", hpa, `{status: {conditions: [{type: AbleToScale, status: "False", reason: FailedGetScale}]}}`, rutter.Degraded, "FailedGetScale"},
		{"the oldest version reads an annotation", "autoscaling/v1/HorizontalPodAutoscaler", `{metadata: {annotations: {autoscaling.alpha.kubernetes.io/conditions: '[{"type":"AbleToScale","status":"True"}]'}}}`, rutter.Healthy, ""},
		{"an annotation that is no JSON", "autoscaling/v1/HorizontalPodAutoscaler", `{metadata: {annotations: {autoscaling.alpha.kubernetes.io/conditions: '['}}}`, rutter.HealthUnknown, "annotation"},
		{"a version that is no more", "autoscaling/v2beta2/HorizontalPodAutoscaler", `{}`, rutter.HealthUnknown, "v2beta2"},

		{"just created", crd, `{}`, rutter.Progressing, "not established"},
		{"established", crd, `{status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}}`, rutter.Healthy, ""},
		{"names taken", crd, `{status: {conditions: [{type: NamesAccepted, status: "False", reason: ListKindConflict}, {type: Established, status: "True"}]}}`, rutter.Degraded, "ListKindConflict"},
		{"going", crd, `{status: {conditions: [{type: Terminating, status: "True"}, {type: Established, status: "True"}]}}`, rutter.Progressing, "Terminating"},

		{"not observed", "policy/v1/PodDisruptionBudget", `{metadata: {generation: 1}}`, rutter.Progressing, ""},
		{"allows none, which is its purpose", "policy/v1/PodDisruptionBudget", `{status: {currentHealthy: 1, desiredHealthy: 1, conditions: [{type: DisruptionAllowed, status: "False", reason: InsufficientPods}]}}`, rutter.Healthy, "0 disruptions"},
		{"can't be computed", "policy/v1/PodDisruptionBudget", `{status: {conditions: [{type: DisruptionAllowed, status: "False", reason: SyncFailed, message: no scale}]}}`, rutter.Degraded, "no scale"},

		{"no health", "ConfigMap", `{}`, "", ""},
		{"a built-in kind with conditions of another meaning", "Node", `{status: {conditions: [{type: Ready, status: "False"}]}}`, "", ""},
		{"no health, but being deleted", "ConfigMap", `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}}`, rutter.Progressing, "Pending deletion"},
		{"a hook that is held by its finalizer", "ConfigMap", `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [argocd.argoproj.io/hook-finalizer]}}`, "", ""},
		{"fields of the wrong type", "apps/v1/Deployment", `{metadata: [], spec: text, status: {conditions: [1, {type: 5}]}}`, rutter.Progressing, "0 of 1"},
	})
}

func TestGitOps(t *testing.T) {
	t.Parallel()
	const app, set, unit = "argoproj.io/v1alpha1/Application", "argoproj.io/v1alpha1/ApplicationSet", "kustomize.toolkit.fluxcd.io/v1/Kustomization"
	const good = `spec: {source: {repoURL: r, path: p, targetRevision: main}, destination: {name: prod}}, `
	run(t, []assessment{
		{"no status (B39)", app, `{` + good + `}`, rutter.Progressing, "no status"},
		{"no health yet", app, `{` + good + `status: {sync: {status: Synced}}}`, rutter.Progressing, "no health"},
		{"well", app, `{` + good + `status: {health: {status: Healthy}, sync: {status: Synced, comparedTo: {source: {repoURL: r, path: p, targetRevision: main}, destination: {name: prod, server: "https://x"}}}}}`, rutter.Healthy, ""},
		{"well, but of another revision (B38)", app, `{` + good + `status: {health: {status: Healthy}, sync: {status: Synced, comparedTo: {source: {repoURL: r, path: p, targetRevision: v1}, destination: {name: prod}}}}}`, rutter.Progressing, "another source"},
		{"well, but of another destination", app, `{` + good + `status: {health: {status: Healthy}, sync: {status: Synced, comparedTo: {source: {repoURL: r, path: p, targetRevision: main}, destination: {name: dev}}}}}`, rutter.Progressing, "destination"},
		{"several sources, one changed", app, `{spec: {sources: [{repoURL: a}, {repoURL: b, targetRevision: v2}]}, status: {health: {status: Healthy}, sync: {status: Synced, comparedTo: {sources: [{repoURL: a}, {repoURL: b, targetRevision: v1}]}}}}`, rutter.Progressing, "another source"},
		{"out of sync", app, `{` + good + `status: {health: {status: Healthy}, sync: {status: OutOfSync}}}`, rutter.Progressing, "OutOfSync"},
		{"sync status unknown", app, `{` + good + `status: {health: {status: Healthy}, sync: {status: Unknown}}}`, rutter.Progressing, "Unknown"},
		{"syncing", app, `{` + good + `status: {health: {status: Healthy}, sync: {status: Synced}, operationState: {phase: Running}}}`, rutter.Progressing, "Running"},
		{"about to sync", app, `{operation: {sync: {}}, status: {health: {status: Healthy}, sync: {status: Synced}}}`, rutter.Progressing, "waiting to start"},
		{"of another generation", app, `{metadata: {generation: 3}, status: {observedGeneration: 2, health: {status: Healthy}, sync: {status: Synced}}}`, rutter.Progressing, "generation 3"},
		{"degraded", app, `{status: {health: {status: Degraded, message: why}, sync: {status: OutOfSync}}}`, rutter.Degraded, "why"},
		{"missing", app, `{status: {health: {status: Missing}, sync: {status: OutOfSync}}}`, rutter.Progressing, "Nothing of the application"},
		{"a word that is no health", app, `{status: {health: {status: Great}, sync: {status: Synced}}}`, rutter.HealthUnknown, "Great"},

		{"no conditions", set, `{}`, rutter.Progressing, ""},
		{"error", set, `{status: {conditions: [{type: ErrorOccurred, status: "True", message: bad}, {type: ResourcesUpToDate, status: "True"}]}}`, rutter.Degraded, "bad"},
		{"rolls out", set, `{status: {conditions: [{type: ErrorOccurred, status: "False"}, {type: RolloutProgressing, status: "True"}, {type: ResourcesUpToDate, status: "True"}]}}`, rutter.Progressing, ""},
		{"well", set, `{status: {conditions: [{type: ResourcesUpToDate, status: "True"}]}}`, rutter.Healthy, ""},
		{"nothing true", set, `{status: {conditions: [{type: ResourcesUpToDate, status: "False"}]}}`, rutter.HealthUnknown, ""},
		{"runs", "argoproj.io/v1alpha1/Workflow", `{status: {phase: Running}}`, rutter.Progressing, ""},
		{"failed", "argoproj.io/v1alpha1/Workflow", `{status: {phase: Error, message: m}}`, rutter.Degraded, "m"},

		{"no status", unit, `{}`, rutter.Progressing, ""},
		{"suspended", unit, `{spec: {suspend: true}, status: {conditions: [{type: Ready, status: "False"}]}}`, rutter.Suspended, ""},
		{"behind", unit, `{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`, rutter.Progressing, "observed 1"},
		{"never observed", unit, `{metadata: {generation: 1}, status: {observedGeneration: -1, conditions: [{type: Ready, status: "True"}]}}`, rutter.Progressing, "observed -1"},
		{"well", unit, `{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", message: Applied}]}}`, rutter.Healthy, "Applied"},
		{"works at it", unit, `{status: {conditions: [{type: Reconciling, status: "True"}, {type: Ready, status: "False"}]}}`, rutter.Progressing, ""},
		{"failed", "helm.toolkit.fluxcd.io/v2/HelmRelease", `{status: {conditions: [{type: Ready, status: "False", reason: UpgradeFailed}]}}`, rutter.Degraded, "UpgradeFailed"},
		{"stalled", "source.toolkit.fluxcd.io/v1/GitRepository", `{status: {conditions: [{type: Stalled, status: "True", reason: URLInvalid}, {type: Ready, status: "False"}]}}`, rutter.Degraded, "URLInvalid"},
		{"static", "source.toolkit.fluxcd.io/v1/HelmRepository", `{spec: {type: oci}}`, rutter.Healthy, ""},
		{"static", "notification.toolkit.fluxcd.io/v1beta3/Alert", `{}`, "", ""},
	})
}

func TestConventions(t *testing.T) {
	t.Parallel()
	const custom = "example.com/v1/Widget"
	run(t, []assessment{
		{"follows none", custom, `{status: {phase: Running}}`, "", ""},
		{"conditions that sum nothing up", custom, `{status: {conditions: [{type: Odd, status: "False"}]}}`, "", ""},
		{"ready", custom, `{status: {conditions: [{type: Ready, status: "True"}]}}`, rutter.Healthy, ""},
		{"not ready is on its way, not broken", custom, `{status: {conditions: [{type: Ready, status: "False", reason: Creating}]}}`, rutter.Progressing, "Creating"},
		{"unknown is on its way", custom, `{status: {conditions: [{type: Ready, status: Unknown}]}}`, rutter.Progressing, ""},
		{"stalled", custom, `{status: {conditions: [{type: Ready, status: "False"}, {type: Stalled, status: "True", message: bad}]}}`, rutter.Degraded, "bad"},
		{"reconciling goes before ready", custom, `{status: {conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True"}]}}`, rutter.Progressing, ""},
		{"behind", custom, `{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`, rutter.Progressing, "observed 1"},
		{"the condition is behind", custom, `{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`, rutter.Progressing, "observed 1"},
		{"available", custom, `{status: {conditions: [{type: Available, status: "True"}]}}`, rutter.Healthy, ""},
		{"ready goes before available", custom, `{status: {conditions: [{type: Available, status: "True"}, {type: Ready, status: "False"}]}}`, rutter.Progressing, ""},
		{"a gateway", "gateway.networking.k8s.io/v1/Gateway", `{status: {conditions: [{type: Accepted, status: "True"}, {type: Programmed, status: "False", reason: AddressNotAssigned}]}}`, rutter.Progressing, "AddressNotAssigned"},
		{"another product's Application", "app.k8s.io/v1/Application", `{}`, "", ""},
		{"another product's Deployment", "example.com/v1/Deployment", `{}`, "", ""},
	})
	if h := health.Of(nil); h != (rutter.Health{}) {
		t.Errorf("nil: %v", h)
	}
}

// No object, however malformed, makes an assessment fail.
func FuzzOf(f *testing.F) {
	f.Add("apps/v1", "Deployment", []byte(`{"spec":{"replicas":"x"},"status":{"conditions":{}}}`))
	f.Add("v1", "Pod", []byte(`{"status":{"phase":"Failed","containerStatuses":[null,{"state":[]}]}}`))
	f.Add("argoproj.io/v1alpha1", "Application", []byte(`{"spec":{"sources":[1]},"status":{"sync":{"comparedTo":{"sources":[null]}}}}`))
	f.Fuzz(func(t *testing.T, version, kind string, body []byte) {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		if yaml.Unmarshal(body, &u.Object) != nil || u.Object == nil {
			return
		}
		u.SetAPIVersion(version)
		u.SetKind(kind)
		if a, b := health.Of(u), health.Of(u); a != b {
			t.Errorf("%v and then %v", a, b)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	u := parse(b, `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 5}, status: {observedGeneration: 1, replicas: 5, updatedReplicas: 5, availableReplicas: 5, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True"}]}}`)
	b.ReportAllocs()
	for b.Loop() {
		health.Of(u)
	}
}
