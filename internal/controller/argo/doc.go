// Package argo drives the engine from Argo CD's objects in the control plane:
// Applications, ApplicationSets, AppProjects, and the Secrets and ConfigMaps
// that declare clusters and repositories. Driver ring: it translates with
// internal/dialect/argo, hands units to the engine, and writes what the engine
// reports back into statuses. It decides nothing and touches no member cluster.
package argo
