package argo

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
)

// clusterKeys are the keys of a cluster Secret that are acted on.
var clusterKeys = []string{"name", "server", "config", "namespaces", "clusterResources", "project"}

// ParseCluster reads a cluster Secret (reference 1.12). The info is as complete
// as can be even with an error, so that the cluster can be shown with its
// problem. An exec provider is refused unless allowExec knows its command.
func ParseCluster(s *corev1.Secret, allowExec func(command string) bool) (rutter.ClusterInfo, rutter.ClusterCredential, error) {
	info, err := clusterInfo(s)
	if err != nil {
		return info, rutter.ClusterCredential{}, err
	}
	cred, err := clusterCredential(s, allowExec)
	for _, k := range keys(s) {
		if !slices.Contains(clusterKeys, k) && data(s, k) != "" {
			cred.Unsupported = append(cred.Unsupported, k)
		}
	}
	return info, cred, err
}

func clusterInfo(s *corev1.Secret) (rutter.ClusterInfo, error) {
	info := rutter.ClusterInfo{
		Name: strings.TrimSpace(data(s, "name")), Server: strings.TrimRight(strings.TrimSpace(data(s, "server")), "/"), Project: data(s, "project"),
		Labels: maps.Clone(s.Labels), Annotations: visible(s.Annotations),
	}
	if info.Name == "" {
		info.Name = info.Server
	}
	for ns := range strings.SplitSeq(data(s, "namespaces"), ",") {
		if ns = strings.TrimSpace(ns); ns != "" {
			info.Namespaces = append(info.Namespaces, ns)
		}
	}
	if info.Server == "" {
		return info, secretError(s, rutter.CodeInvalid, "key server is missing or empty")
	}
	if u, err := url.Parse(info.Server); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return info, secretError(s, rutter.CodeInvalid, "key server must be a URL such as https://host:6443")
	}
	var err error
	info.ClusterResources, err = flag(s, "clusterResources")
	return info, err
}

// visible leaves out what kubectl keeps of a Secret's content in its annotations.
func visible(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	delete(out, corev1.LastAppliedConfigAnnotation)
	if len(out) == 0 {
		return nil
	}
	return out
}
