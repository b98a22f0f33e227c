package compare_test

import (
	"testing"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

var ruleList = []rutter.IgnoreRule{
	{Group: "apps", Kind: "Deployment", JSONPointers: []string{"/spec/replicas"}},
	{Group: "*", Kind: "Certificate", JSONPointers: []string{"/spec/secretName"}},
}

func BenchmarkOwnedHash(b *testing.B) {
	live := sampleOf(b, "deployment").live
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := compare.OwnedHash(live, rutter.FieldManager, nil); !ok {
			b.Fatal("not ours")
		}
	}
}

func BenchmarkOwnedHashIgnoring(b *testing.B) {
	rules := read(b, ruleList...)
	live := sampleOf(b, "deployment").live
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := compare.OwnedHash(live, rutter.FieldManager, rules); !ok {
			b.Fatal("not ours")
		}
	}
}

func BenchmarkOwnedHashConfigMap(b *testing.B) {
	live := sampleOf(b, "configmap").live
	b.ReportAllocs()
	for b.Loop() {
		compare.OwnedHash(live, rutter.FieldManager, nil)
	}
}

func BenchmarkLocal(b *testing.B) {
	s := sampleOf(b, "deployment")
	b.ReportAllocs()
	for b.Loop() {
		compare.Local(s.desired, s.live, ours)
	}
}

func BenchmarkPredicted(b *testing.B) {
	s := sampleOf(b, "deployment")
	b.ReportAllocs()
	for b.Loop() {
		compare.Predicted(s.predicted, s.live, ours)
	}
}

func BenchmarkHash(b *testing.B) {
	s := sampleOf(b, "deployment")
	b.ReportAllocs()
	for b.Loop() {
		compare.Hash(s.desired)
	}
}
