package argo

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

const (
	// LabelLeftovers is on the ConfigMaps that say what is left at clusters that are gone.
	LabelLeftovers = "rutter.dev/leftovers"
	// annotationCluster names the cluster.
	annotationCluster = "rutter.dev/cluster"
	// mostLeft and mostLeftBytes bound what one of them lists; the rest is counted.
	mostLeft      = 500
	mostLeftBytes = 800 << 10
)

// Leftover is what one Application left at a cluster.
type Leftover struct {
	Cluster     string    `json:"cluster"`
	Application string    `json:"application"`
	At          time.Time `json:"at"`
	Count       int       `json:"count"`
	// Objects are the first of them.
	Objects []string `json:"objects,omitempty"`
}

// LeftBy is what an Application has at its cluster, as its status says.
func LeftBy(app *v1alpha1.Application, now time.Time) Leftover {
	l := Leftover{Cluster: cmp.Or(app.Spec.Destination.Name, strings.TrimRight(app.Spec.Destination.Server, "/")),
		Application: app.Namespace + "/" + app.Name, At: now.UTC().Truncate(time.Second)}
	for _, r := range app.Status.Resources {
		if r.Health != nil && r.Health.Status == string(rutter.Missing) {
			continue
		}
		l.Count++
		if len(l.Objects) < mostLeft {
			l.Objects = append(l.Objects, rutter.Ref{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}.String())
		}
	}
	return l
}

// LeftoversName is the name of the ConfigMap about a cluster.
func LeftoversName(cluster string) string {
	sum := sha256.Sum256([]byte(cluster))
	return "rutter-leftovers-" + hex.EncodeToString(sum[:8])
}

// NewLeftovers is that ConfigMap with nothing in it.
func NewLeftovers(namespace, cluster string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: LeftoversName(cluster),
		Labels: map[string]string{LabelLeftovers: "true"}, Annotations: map[string]string{annotationCluster: cluster}}}
}

// Write adds it to the ConfigMap; where the objects do not fit any more, only their
// number is kept.
func (l Leftover) Write(cm *corev1.ConfigMap) error {
	size := 0
	for _, v := range cm.Data {
		size += len(v)
	}
	for {
		raw, err := json.Marshal(l)
		if err != nil {
			return rutter.Errorf(rutter.CodeInternal, "encode what is left: %w", err)
		}
		if size+len(raw) > mostLeftBytes && len(l.Objects) > 0 {
			l.Objects = nil
			continue
		}
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[strings.ReplaceAll(l.Application, "/", ".")] = string(raw)
		return nil
	}
}

// Leftovers are what a ConfigMap says, by application.
func Leftovers(cm *corev1.ConfigMap) ([]Leftover, error) {
	var all []Leftover
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		var l Leftover
		if err := json.Unmarshal([]byte(cm.Data[key]), &l); err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "ConfigMap %s: data[%q]: %w", cm.Name, key, err)
		}
		all = append(all, l)
	}
	return all, nil
}
