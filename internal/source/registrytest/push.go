package registrytest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	oras "oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// Layer is a part of an artifact.
type Layer struct {
	MediaType string
	Data      []byte
}

// Push pushes an artifact with the oras client, by a tag, and returns its digest.
func (r *Registry) Push(t testing.TB, repository, tag, configType string, layers ...Layer) string {
	t.Helper()
	repo := r.repository(t, repository)
	var descriptors []v1.Descriptor
	for _, l := range layers {
		d, err := oras.PushBytes(t.Context(), repo, l.MediaType, l.Data)
		if err != nil {
			t.Fatal(err)
		}
		descriptors = append(descriptors, d)
	}
	config, err := oras.PushBytes(t.Context(), repo, configType, []byte(`{"name":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	manifest := marshal(t, v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, Config: config, Layers: descriptors})
	return r.PushManifest(t, repository, tag, v1.MediaTypeImageManifest, manifest)
}

// PushIndex pushes an index of manifests.
func (r *Registry) PushIndex(t testing.TB, repository, tag string, manifests ...string) string {
	t.Helper()
	repo := r.repository(t, repository)
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	for _, m := range manifests {
		d, err := repo.Resolve(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		index.Manifests = append(index.Manifests, d)
	}
	return r.PushManifest(t, repository, tag, v1.MediaTypeImageIndex, marshal(t, index))
}

// PushManifest pushes a manifest as it is.
func (r *Registry) PushManifest(t testing.TB, repository, tag, mediaType string, manifest []byte) string {
	t.Helper()
	repo := r.repository(t, repository)
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(manifest), Size: int64(len(manifest))}
	if err := repo.PushReference(t.Context(), d, bytes.NewReader(manifest), tag); err != nil {
		t.Fatal(err)
	}
	return d.Digest.String()
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (r *Registry) repository(t testing.TB, name string) *remote.Repository {
	t.Helper()
	repo, err := remote.NewRepository(r.Host + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = !r.opts.TLS
	repo.Client = &auth.Client{Client: r.Client(), Credential: auth.StaticCredential(r.Host, auth.Credential{Username: r.opts.User, Password: r.opts.Password})}
	return repo
}

// TarGzip packs files, by name, as a tar archive with gzip.
func TarGzip(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(Tar(t, files)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Tar packs files, by name, as a tar archive.
func Tar(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Chart packs a chart with a values file.
func Chart(t testing.TB, name, version, values string) []byte {
	t.Helper()
	return TarGzip(t, map[string]string{
		name + "/Chart.yaml":          "apiVersion: v2\nname: " + name + "\nversion: " + version + "\n",
		name + "/values.yaml":         values,
		name + "/templates/note.yaml": "kind: ConfigMap\n",
	})
}
