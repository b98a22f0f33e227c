package generate

import (
	"time"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// RequeueDefaults are the pauses between evaluations of generators that have no
// requeueAfterSeconds. Zero values are the reference's.
type RequeueDefaults struct {
	// Polled is for git and clusterDecisionResource; 3 minutes.
	Polled time.Duration
	// Asked is for scmProvider, pullRequest and plugin; 30 minutes.
	Asked time.Duration
}

// Requeue is when a set is due again though nothing is heard: the shortest
// pause of its generators, at any depth; 0 is never.
func (d RequeueDefaults) Requeue(set *v1alpha1.ApplicationSet) time.Duration {
	return d.of(nodesOf(set))
}

func (d RequeueDefaults) of(nodes []node) time.Duration {
	if d.Polled == 0 {
		d.Polled = 3 * time.Minute
	}
	if d.Asked == 0 {
		d.Asked = 30 * time.Minute
	}
	var shortest time.Duration
	walk(nodes, func(n node) {
		pause := d.Asked
		var own *int64
		switch n.kind {
		case kindGit:
			pause, own = d.Polled, n.leaf.Git.RequeueAfterSeconds
		case kindDecision:
			pause, own = d.Polled, n.leaf.ClusterDecisionResource.RequeueAfterSeconds
		case kindSCM:
			own = n.leaf.SCMProvider.RequeueAfterSeconds
		case kindPull:
			own = n.leaf.PullRequest.RequeueAfterSeconds
		case kindPlugin:
			own = n.leaf.Plugin.RequeueAfterSeconds
		default:
			return
		}
		if own != nil {
			pause = time.Duration(max(*own, 0)) * time.Second
		}
		if pause > 0 && (shortest == 0 || pause < shortest) {
			shortest = pause
		}
	})
	return shortest
}
