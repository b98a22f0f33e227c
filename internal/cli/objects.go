package cli

import (
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// readObjects reads a file of YAML documents, strictly: an unknown field or a
// key that is there twice is an error that names the file, the line and the
// field. Documents of kinds that are not Rutter's are left out.
func (r *root) readObjects(file string) ([]runtime.Object, error) {
	data, err := r.readFile(file)
	if err != nil {
		return nil, err
	}
	objects, err := argo.Decode(data, file)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return objects, nil
}

func (r *root) readFile(file string) ([]byte, error) {
	if file == "-" {
		data, err := io.ReadAll(r.in)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return data, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	return data, nil
}
