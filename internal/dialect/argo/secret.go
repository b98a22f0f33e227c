package argo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
)

// data reads a key of a Secret, as stored or as written in a file.
func data(s *corev1.Secret, key string) string {
	if v, ok := s.StringData[key]; ok {
		return v
	}
	return string(s.Data[key])
}

// keys are the keys of a Secret in order.
func keys(s *corev1.Secret) []string {
	all := slices.Concat(slices.Collect(maps.Keys(s.Data)), slices.Collect(maps.Keys(s.StringData)))
	slices.Sort(all)
	return slices.Compact(all)
}

// secretError names a Secret and the place in it. What is wrong is said without
// the value, which may be a credential.
func secretError(s *corev1.Secret, code rutter.Code, format string, args ...any) error {
	name := s.Name
	if s.Namespace != "" {
		name = s.Namespace + "/" + s.Name
	}
	return rutter.Errorf(code, "Secret %s: %s", name, fmt.Sprintf(format, args...))
}

// flag reads a boolean key; an absent or empty one is false.
func flag(s *corev1.Secret, key string) (bool, error) {
	v := data(s, key)
	if v == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, secretError(s, rutter.CodeInvalid, "key %s must be true or false", key)
	}
	return b, nil
}

// ParseTrust reads argocd-ssh-known-hosts-cm and argocd-tls-certs-cm; either
// may be nil.
func ParseTrust(knownHosts, tlsCerts *corev1.ConfigMap) rutter.RepoTrust {
	var t rutter.RepoTrust
	if knownHosts != nil {
		t.KnownHosts = knownHosts.Data["ssh_known_hosts"]
	}
	if tlsCerts != nil {
		t.CAs = maps.Clone(tlsCerts.Data)
	}
	return t
}
