package policy

import "github.com/rutterhq/rutter"

// Question is what somebody wants to do in a project. What is empty is not asked
// about, so that one question serves the admission of an Application (where it
// lives, its source, its destination) and the apply of an object.
type Question struct {
	// Application and its namespace, with the namespace of the control plane.
	Application, ApplicationNamespace, ControlPlane string
	// Source is the URL of a repository.
	Source string
	// Cluster and Namespace are the destination. Namespace is the Application's,
	// whose rights count; an object is asked about where it is itself.
	Cluster   *rutter.ClusterInfo
	Namespace string
	// Object is what is to be managed on Cluster; without a kind there is none.
	Object     rutter.Ref
	Namespaced bool
	// Identity says whose rights are used.
	Identity Impersonation
}

// Answer is by which rules it is allowed, and with whose rights it is done.
type Answer struct {
	// Rules are the rules that allow it, in the order of the questions.
	Rules []string `json:"rules"`
	// User is to be impersonated; empty means the engine's own identity.
	User string `json:"user,omitempty"`
}

// Decide answers a question. The error is the refusal and names the rule; there
// is no third answer. A destination is asked about only without an object, since
// an object may be elsewhere than its Application's destination, and what counts
// is where it is.
func (p *Project) Decide(q Question) (Answer, error) {
	a := Answer{Rules: []string{}}
	if err := p.CheckSourceNamespace(q.Application, q.ApplicationNamespace, q.ControlPlane); err != nil {
		return Answer{}, err
	}
	if q.Source != "" {
		rule, err := p.Source(q.Source)
		if err != nil {
			return Answer{}, err
		}
		a.Rules = append(a.Rules, rule)
	}
	if q.Cluster == nil {
		return a, nil
	}
	rules, err := p.place(q)
	if err != nil {
		return Answer{}, err
	}
	user, rule, err := p.Identity(q.Identity, *q.Cluster, q.Namespace, q.ApplicationNamespace)
	if err != nil {
		return Answer{}, err
	}
	if rule != "" {
		rules = append(rules, rule)
	}
	return Answer{Rules: append(a.Rules, rules...), User: user}, nil
}

func (p *Project) place(q Question) ([]string, error) {
	if q.Object.Kind != "" {
		return p.resource(*q.Cluster, q.Object, q.Namespaced)
	}
	rule, err := p.Destination(*q.Cluster, q.Namespace)
	return []string{rule}, err
}
