package health

import (
	rutter "github.com/rutterhq/rutter"
)

// gateway is accepted, then programmed; each listener counts.
func gateway(o object) rutter.Health {
	conditions := o.conditions()
	for _, l := range list(o.status, "listeners") {
		m, _ := l.(map[string]any)
		for _, c := range conditionsOf(list(m, "conditions")) {
			bad := c.kind == "Accepted" || c.kind == "ResolvedRefs" || c.kind == "Programmed" && c.reason != "Pending"
			if bad && c.status == "False" || c.kind == "Conflicted" && c.status == "True" {
				return degraded("listener %s: %s", text(m, "name"), c.words())
			}
		}
	}
	if c, ok := find(conditions, "Accepted"); ok && c.status == "False" && c.reason != "Pending" && c.reason != "Waiting" {
		return from(rutter.Degraded, c)
	}
	return ready("Programmed", "Pending", "AddressNotAssigned", "AddressNotUsable", "Waiting")(o)
}

// route must be accepted by each of its gateways, and find what it points to.
func route(o object) rutter.Health {
	return byParents(o, "parents", "parentRef", o.spec["parentRefs"] != nil)
}

// policyAncestors is for policies, which report for each gateway that they reach.
func policyAncestors(o object) rutter.Health { return byParents(o, "ancestors", "ancestorRef", true) }

func byParents(o object, field, ref string, wanted bool) rutter.Health {
	parents := list(o.status, field)
	if len(parents) == 0 {
		if !wanted {
			return healthy("It names no gateway")
		}
		return progressing("Waiting for a gateway to accept it")
	}
	var waiting rutter.Health
	for _, p := range parents {
		m, _ := p.(map[string]any)
		name := text(dict(m, ref), "name")
		conditions := conditionsOf(list(m, "conditions"))
		for _, c := range conditions {
			switch {
			case c.hasObserved && c.observed != count(o.meta, "generation"):
				waiting = progressing("Waiting for gateway %s to observe the newest spec", name)
			case c.status == "False" && (c.kind == "Accepted" || c.kind == "ResolvedRefs" || c.kind == "Programmed") && c.reason != "Pending":
				return degraded("gateway %s: %s", name, c.words())
			case c.status != "True" && c.kind == "Accepted":
				waiting = progressing("gateway %s: %s", name, c.words())
			}
		}
		if len(conditions) == 0 {
			waiting = progressing("Waiting for gateway %s", name)
		}
	}
	if waiting.Status != "" {
		return waiting
	}
	return healthy("Accepted by %d gateways", len(parents))
}

// gloo writes its state as a word, or as the number of one, for each controller
// that reads the object.
func gloo(o object) rutter.Health {
	states := []map[string]any{o.status}
	if by := dict(o.status, "statuses"); by != nil {
		states = states[:0]
		for _, name := range sorted(by) {
			m, _ := by[name].(map[string]any)
			states = append(states, m)
		}
	}
	accepted := false
	for _, s := range states {
		state := text(s, "state")
		if n, ok := number(s, "state"); ok {
			state = [...]string{"Pending", "Accepted", "Rejected", "Warning"}[min(max(n, 0), 3)]
		}
		switch state {
		case "Accepted":
			accepted = true
		case "Rejected", "Warning":
			return degraded("%s%s", state, suffix(text(s, "reason")))
		}
	}
	if accepted {
		return healthy("Accepted")
	}
	return progressing("Waiting to be accepted")
}

func openshiftRoute(o object) rutter.Health {
	entries := list(o.status, "ingress")
	if len(entries) == 0 {
		return progressing("Waiting for a router to admit the route")
	}
	for _, e := range entries {
		m, _ := e.(map[string]any)
		c, ok := find(conditionsOf(list(m, "conditions")), "Admitted")
		switch {
		case ok && c.status == "False":
			return degraded("router %s: %s", text(m, "routerName"), c.words())
		case !ok || c.status != "True":
			return progressing("Waiting for router %s to admit the route", text(m, "routerName"))
		}
	}
	return healthy("Admitted by %d routers", len(entries))
}

// adopted is for what somebody must find first.
func adopted(o object) rutter.Health { return becoming("Adopted")(o) }

// ansible reads operators that are made of Ansible roles.
func ansible(o object) rutter.Health {
	conditions := o.conditions()
	if c, ok := find(conditions, "Failure"); ok && c.status == "True" {
		return from(rutter.Degraded, c)
	}
	if c, ok := find(conditions, "Successful"); ok && c.status == "True" {
		return from(rutter.Healthy, c)
	}
	if c, ok := find(conditions, "Running"); ok && c.status == "True" && c.reason == "Successful" {
		return from(rutter.Healthy, c)
	}
	return progressing("The operator is at work")
}
