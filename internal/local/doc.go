// Package local starts and manages Kubernetes clusters on this machine, each a
// child process of rutter-localcluster. ADAPTER ring: it knows processes and
// kubeconfigs, nothing of what runs in the clusters.
package local
