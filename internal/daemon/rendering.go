package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/decrypt"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/render"
	"github.com/rutterhq/rutter/internal/render/plugin"
	"github.com/rutterhq/rutter/internal/render/store"
	"github.com/rutterhq/rutter/internal/sandbox"
)

// rendering is everything between a repository and objects.
type rendering struct {
	sources  *sources
	keys     *decrypt.Decrypter
	renderer *render.Renderer
	closes   []func() error
}

// renderingConfig is what it needs to know.
type renderingConfig struct {
	sourceConfig

	// fetch, when set, stands before the sources: folders in place of URLs, or a refusal.
	fetch func(rutter.Sources) rutter.Sources
	// plugins is a folder of ConfigManagementPlugin files; empty means none.
	plugins string
	// pluginTools are folders with programs for plugins, pluginRequire how strong
	// their sandbox must be.
	pluginTools   []string
	pluginRequire sandbox.Require
	// keep stores renders on disk.
	keep bool
}

// openRendering opens sources, keys and the renderer. Close releases them.
func openRendering(cfg renderingConfig) (*rendering, rutter.Sources, error) {
	r := &rendering{keys: decrypt.New(decrypt.Options{Logger: cfg.logger})}
	var err error
	if r.sources, err = openSources(cfg.sourceConfig); err != nil {
		return nil, nil, err
	}
	r.closes = append(r.closes, r.sources.Close)
	var from rutter.Sources = r.sources
	if cfg.fetch != nil {
		from = cfg.fetch(from)
	}
	opts := render.Options{Sources: from, Decrypter: r.keys, Logger: cfg.logger}
	if opts.Isolated, err = render.Isolated(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("prepare the children that evaluate Jsonnet and CUE: %w", err), r.Close())
	}
	r.closes = append(r.closes, func() error { opts.Isolated.Close(); return nil })
	if opts.Plugins, err = r.openPlugins(cfg); err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	if cfg.keep {
		if opts.Store, err = store.Open(filepath.Join(cfg.dir, "renders"), store.Options{Logger: cfg.logger}); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("open the render store: %w", err), r.Close())
		}
	}
	r.renderer = render.New(opts)
	return r, from, nil
}

// Close releases what was opened.
func (r *rendering) Close() error {
	var errs []error
	for _, c := range r.closes {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// openPlugins reads the operator's plugins. A bad file holds back only itself.
func (r *rendering) openPlugins(cfg renderingConfig) (*plugin.Renderer, error) {
	if cfg.plugins == "" {
		return nil, nil //nolint:nilnil // no folder, no plugins
	}
	definitions, errs := plugin.Load(cfg.plugins)
	for _, err := range errs {
		cfg.logger.Error("a plugin cannot be used", "err", err)
	}
	if len(definitions) == 0 && len(errs) > 0 {
		return nil, fmt.Errorf("none of the plugins in %s can be used: %w", cfg.plugins, errors.Join(errs...))
	}
	for _, d := range definitions {
		for _, w := range d.Warnings {
			cfg.logger.Warn("a plugin asks for what it does not get", "plugin", d.FullName(), "problem", w)
		}
	}
	box, err := sandbox.New(sandbox.Options{Tools: cfg.pluginTools, Require: cfg.pluginRequire, Logger: cfg.logger})
	if err != nil {
		return nil, fmt.Errorf("prepare the sandbox of plugins: %w", err)
	}
	r.closes = append(r.closes, box.Close)
	return plugin.New(plugin.Options{Definitions: definitions, Sandbox: box, Logger: cfg.logger}), nil
}

// SetKeys implements argo.DecryptionKeys.
func (r *rendering) SetKeys(keys []rutter.DecryptionKey) error {
	return r.keys.SetKeys(keys) // it names the Secret and the key
}

// declare reads credentials, trust, keys and settings from a control plane, once.
func (r *rendering) declare(ctx context.Context, c client.Client, namespace string, logger *slog.Logger) error {
	var secrets corev1.SecretList
	if err := c.List(ctx, &secrets, client.InNamespace(namespace), client.HasLabels{argo.LabelSecretType}); err != nil {
		return fmt.Errorf("list Secrets of repositories and keys: %w", err)
	}
	var creds []rutter.RepoCredential
	var keys []rutter.DecryptionKey
	for i := range secrets.Items {
		s := &secrets.Items[i]
		switch s.Labels[argo.LabelSecretType] {
		case argo.SecretTypeRepository, argo.SecretTypeRepoCreds:
			cred, err := argo.ParseRepository(s)
			if err != nil {
				logger.Warn("repository Secret cannot be used", "secret", s.Name, "err", err)
				continue
			}
			creds = append(creds, cred)
		case argo.SecretTypeSOPSKeys:
			keys = append(keys, argo.ParseDecryptionKey(s))
		}
	}
	maps := map[string]*corev1.ConfigMap{}
	for _, name := range []string{argo.ConfigMapName, argo.ParamsMapName, argo.KnownHostsMapName, argo.TLSCertsMapName} {
		maps[name] = &corev1.ConfigMap{}
		err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, maps[name])
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read ConfigMap %s: %w", name, err)
		}
	}
	r.sources.SetCredentials(creds, argo.ParseTrust(maps[argo.KnownHostsMapName], maps[argo.TLSCertsMapName]))
	if err := r.SetKeys(keys); err != nil {
		logger.Warn("decryption keys cannot be used", "err", err)
	}
	settings, problems := argo.ParseSettings(maps[argo.ConfigMapName], maps[argo.ParamsMapName])
	for _, p := range problems {
		logger.Warn("a setting is not acted on", "problem", p)
	}
	r.renderer.Set(settings)
	return nil
}
