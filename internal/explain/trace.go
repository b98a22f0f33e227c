package explain

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mostMessages bounds what is said of one object's pods and events.
const mostMessages = 5

// Around are the objects of a namespace in which the cause of an ailment is looked for.
type Around struct {
	// Objects are pods, and what stands between a workload and its pods.
	Objects []unstructured.Unstructured
	Events  []unstructured.Unstructured
}

// Trace follows owners from an object down to what does not work, and gives its
// messages: those of containers that do not run, of pods that are not scheduled,
// and of warnings. What a container itself wrote is not among them.
func Trace(uid string, root *unstructured.Unstructured, around Around) []string {
	family := descendants(uid, around.Objects)
	var out []string
	if root != nil && root.GetKind() == "Pod" {
		out = append(out, podMessages(root)...)
	}
	for i := range around.Objects {
		o := &around.Objects[i]
		if o.GetKind() == "Pod" && family[string(o.GetUID())] && string(o.GetUID()) != uid {
			out = append(out, podMessages(o)...)
		}
	}
	out = append(out, warnings(family, around.Events)...)
	var unique []string
	for _, m := range out {
		if !slices.Contains(unique, m) {
			unique = append(unique, m)
		}
	}
	if len(unique) > mostMessages {
		return append(unique[:mostMessages], fmt.Sprintf("and %d more messages", len(unique)-mostMessages))
	}
	return unique
}

// descendants are the UIDs of an object and of all that it owns, at any distance.
func descendants(uid string, objects []unstructured.Unstructured) map[string]bool {
	family := map[string]bool{uid: true}
	for grown := true; grown; {
		grown = false
		for i := range objects {
			o := &objects[i]
			if family[string(o.GetUID())] {
				continue
			}
			for _, owner := range o.GetOwnerReferences() {
				if owner.UID != "" && family[string(owner.UID)] {
					family[string(o.GetUID())], grown = true, true
					break
				}
			}
		}
	}
	return family
}

// podMessages are why a pod does not run.
func podMessages(pod *unstructured.Unstructured) []string {
	var out []string
	say := func(format string, args ...any) {
		out = append(out, "pod "+pod.GetName()+": "+fmt.Sprintf(format, args...))
	}
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	if message, _, _ := unstructured.NestedString(pod.Object, "status", "message"); message != "" {
		say("%s: %s", phase, message)
	}
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, c := range conditions {
		cond, _ := c.(map[string]any)
		if message := str(cond, "message"); cond["type"] == "PodScheduled" && cond["status"] == "False" && message != "" {
			say("%s: %s", cmp.Or(str(cond, "reason"), "not scheduled"), message)
		}
	}
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", list)
		for _, s := range statuses {
			status, _ := s.(map[string]any)
			if words := containerWords(status); words != "" {
				say("container %s: %s", str(status, "name"), words)
			}
		}
	}
	return out
}

// containerWords say why a container does not run; empty when it does.
func containerWords(status map[string]any) string {
	waiting, _, _ := unstructured.NestedMap(status, "state", "waiting")
	ended, _, _ := unstructured.NestedMap(status, "state", "terminated")
	before, _, _ := unstructured.NestedMap(status, "lastState", "terminated")
	switch reason := str(waiting, "reason"); {
	case reason == "ContainerCreating" || reason == "PodInitializing":
		return ""
	case reason != "":
		words := reason
		if m := str(waiting, "message"); m != "" {
			words += ": " + m
		}
		if before != nil {
			words += fmt.Sprintf(" (it ended before with exit code %v, %s)", before["exitCode"], cmp.Or(str(before, "reason"), "no reason"))
		}
		return words
	case ended != nil && fmt.Sprint(ended["exitCode"]) != "0":
		return fmt.Sprintf("ended with exit code %v, %s", ended["exitCode"], cmp.Or(str(ended, "reason"), "no reason"))
	}
	return ""
}

// warnings are the events of type Warning about a family, the latest first.
func warnings(family map[string]bool, events []unstructured.Unstructured) []string {
	type warning struct{ at, text string }
	var list []warning
	for i := range events {
		e := events[i].Object
		about, _, _ := unstructured.NestedMap(e, "involvedObject")
		if str(e, "type") != "Warning" || !family[str(about, "uid")] {
			continue
		}
		list = append(list, warning{cmp.Or(str(e, "lastTimestamp"), str(e, "eventTime")),
			fmt.Sprintf("event of %s %s: %s: %s", str(about, "kind"), str(about, "name"), str(e, "reason"), str(e, "message"))})
	}
	slices.SortStableFunc(list, func(a, b warning) int { return cmp.Compare(b.at, a.at) })
	out := make([]string, 0, len(list))
	for _, w := range list {
		out = append(out, w.text)
	}
	return out
}

func str(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}
