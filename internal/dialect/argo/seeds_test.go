package argo_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rutterhq/rutter/internal/dialect/argo"
)

func TestSeeds(t *testing.T) {
	files, _ := filepath.Glob("../../../test/seeds/*.yaml")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, err = argo.Decode(b, filepath.Base(f))
		t.Log(filepath.Base(f), err)
	}
}
