package explain

import (
	"strings"

	"github.com/rutterhq/rutter"
)

// ClassifyObject says why an object as a whole is not Synced, where that is not
// about single fields.
func ClassifyObject(f Facts) Cause {
	reason := f.Resource.Reason
	lower := strings.ToLower(reason)
	kind := f.Resource.Kind
	switch {
	case f.Resource.RequiresPruning || reason == "not declared":
		return Cause{Extra, "it is in the cluster, and Git does not declare it any more",
			"Remove it: " + f.syncCommand() + " --prune; or declare it in Git again; or let the Application do it: spec.syncPolicy.automated.prune: true."}
	case reason == "missing":
		return Cause{Absent, "Git declares it, and it is not in the cluster: it was deleted, or never created", f.sync()}
	case reason == "changed in Git":
		return Cause{NotSynced, "Git has changed since the last sync", f.sync()}
	case strings.HasPrefix(reason, "WaitingForKind"):
		return Cause{MissingKind, detail(reason), "Install what defines " + kind + " (its CustomResourceDefinition), or correct the apiVersion" + f.at() + ". The object is sent once the cluster serves the kind."}
	case strings.HasPrefix(reason, "KindTainted"):
		return Cause{TaintedKind, detail(reason), "Mend what the server complains of (a conversion webhook that is down, a permission to list and watch " + kind + "). Other kinds are not concerned."}
	case strings.Contains(reason, "is part of applications"):
		return Cause{OtherApp, reason, "Declare the object in one of the two only: remove it" + f.at() + ", or from the other application."}
	case strings.Contains(lower, "immutable") || strings.Contains(lower, "updates to statefulset spec") || strings.Contains(lower, "may not change once set"):
		return Cause{Immutable, reason, "The field cannot be changed in place: change it back" + f.at() + ", or let the object be deleted and created again: " + f.syncCommand() + " --force."}
	case strings.Contains(lower, "forbidden"):
		return Cause{Refused, reason, "Give the cluster's account of Rutter the permission that the server names, or remove the object" + f.at() + "."}
	case reason == "not compared yet":
		return Cause{NotCompared, "the comparison has not come to it yet", "Ask again."}
	case f.Resource.State == rutter.SyncUnknown:
		return Cause{NotCompared, orElse(reason, "it could not be compared"), "Mend what the server says, and ask again."}
	}
	return Cause{NotSynced, orElse(reason, "it differs"), f.sync()}
}

// detail is a reason without its first word.
func detail(reason string) string {
	_, after, ok := strings.Cut(reason, ": ")
	if !ok {
		return reason
	}
	return after
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
