package health

import (
	"strings"
	"time"

	rutter "github.com/rutterhq/rutter"
)

const (
	ignoreRestartPolicy = "argocd.argoproj.io/ignore-restart-policy"
	hookAnnotation      = "argocd.argoproj.io/hook"
)

// pod assesses a pod. One that is restarted for ever is degraded by the state
// of its containers; one that runs to an end is judged by its end.
func pod(o object) rutter.Health {
	restarts := text(o.spec, "restartPolicy") == "Always" ||
		o.annotation(ignoreRestartPolicy) == "true" && o.annotation(hookAnnotation) == ""
	containers := list(o.status, "containerStatuses")
	if restarts {
		if h, stuck := stuckContainer(containers); stuck {
			return h
		}
	}
	switch phase := text(o.status, "phase"); phase {
	case "Pending":
		return progressing("The pod is pending%s", unscheduled(o))
	case "Succeeded":
		return healthy("The pod has succeeded%s", suffix(text(o.status, "message")))
	case "Failed":
		return degraded("%s", failure(o))
	case "Running":
		if !restarts {
			return progressing("The pod is running and will end%s", suffix(text(o.status, "message")))
		}
		return runningPod(o, containers)
	default:
		return unknown("The pod is in the phase %q%s", phase, suffix(text(o.status, "message")))
	}
}

func runningPod(o object, containers []any) rutter.Health {
	ready, _ := find(o.conditions(), "Ready")
	if ready.status == "True" {
		return healthy("The pod is ready")
	}
	for _, c := range containers {
		m, _ := c.(map[string]any)
		if ended := dict(dict(m, "lastState"), "terminated"); ended != nil {
			return degraded("Container %q was restarted and is not ready%s", text(m, "name"), suffix(ending(ended)))
		}
	}
	return progressing("The pod is running and not ready%s", suffix(ready.message))
}

// stuckContainer finds a container that can't start.
func stuckContainer(containers []any) (rutter.Health, bool) {
	var why []string
	for _, c := range containers {
		m, _ := c.(map[string]any)
		waiting := dict(dict(m, "state"), "waiting")
		reason := text(waiting, "reason")
		if strings.HasPrefix(reason, "Err") || strings.HasSuffix(reason, "Error") || strings.HasSuffix(reason, "BackOff") {
			why = append(why, "container "+text(m, "name")+": "+reason+suffix(text(waiting, "message")))
		}
	}
	if len(why) == 0 {
		return rutter.Health{}, false
	}
	return degraded("%s", strings.Join(why, "; ")), true
}

// failure says why a pod failed: its own words, or those of the first
// container that says something.
func failure(o object) string {
	if m := text(o.status, "message"); m != "" {
		return m
	}
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, c := range list(o.status, field) {
			m, _ := c.(map[string]any)
			if ended := dict(dict(m, "state"), "terminated"); ended != nil {
				if words := ending(ended); words != "" {
					return "container " + text(m, "name") + ": " + words
				}
			}
		}
	}
	return "The pod has failed" + suffix(text(o.status, "reason"))
}

// ending says how a container ended, empty when it ended well.
func ending(ended map[string]any) string {
	switch {
	case text(ended, "message") != "":
		return text(ended, "message")
	case text(ended, "reason") == "OOMKilled":
		return "OOMKilled"
	}
	if code := count(ended, "exitCode"); code != 0 {
		return say("exit code %d", []any{code})
	}
	return ""
}

func unscheduled(o object) string {
	if c, ok := find(o.conditions(), "PodScheduled"); ok && c.status == "False" {
		return suffix(c.message)
	}
	return suffix(text(o.status, "message"))
}

func suffix(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// earlier compares two RFC 3339 times; what can't be read is not earlier.
func earlier(a, b string) bool {
	x, err := time.Parse(time.RFC3339, a)
	if err != nil {
		return false
	}
	y, err := time.Parse(time.RFC3339, b)
	return err == nil && x.Before(y)
}
