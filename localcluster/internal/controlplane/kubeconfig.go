package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/rutterhq/rutter/localcluster/internal/pki"
)

// WriteKubeconfig writes a self-contained administrator's kubeconfig, in one
// step and readable by the owner only.
func WriteKubeconfig(file, name, server string, f pki.Files) error {
	ca, err := os.ReadFile(f.CA)
	if err != nil {
		return fmt.Errorf("read the CA: %w", err)
	}
	cert, err := os.ReadFile(f.AdminCert)
	if err != nil {
		return fmt.Errorf("read the administrator's certificate: %w", err)
	}
	key, err := os.ReadFile(f.AdminKey)
	if err != nil {
		return fmt.Errorf("read the administrator's key: %w", err)
	}
	data, err := clientcmd.Write(api.Config{
		CurrentContext: name,
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: name}},
		Clusters:       map[string]*api.Cluster{name: {Server: server, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*api.AuthInfo{name: {ClientCertificateData: cert, ClientKeyData: key}},
	})
	if err != nil {
		return fmt.Errorf("encode the kubeconfig: %w", err)
	}
	return replace(file, data)
}

// replace puts a file in place whole: a reader sees the old one or the new one.
func replace(file string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	defer os.Remove(tmp.Name()) // there only if something failed
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return fmt.Errorf("put the kubeconfig in place: %w", err)
	}
	return nil
}

// PublishKubeconfig writes the administrator's kubeconfig for users. A new
// cluster has none before it is ready.
func (c *Cluster) PublishKubeconfig(file string) error {
	return WriteKubeconfig(file, c.opts.Name, c.Server(), c.files)
}
