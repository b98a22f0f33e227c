package lint

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mutableTag matches tags that are pushed again and again.
var mutableTag = regexp.MustCompile(`(?i)^(latest|main|master|head|trunk|dev|develop|development|staging|stage|prod|production|stable|unstable|edge|nightly|canary|next|current|release|release-candidate|rc|snapshot|test|testing|alpha|beta|preview|feature[/_-].*|latest-.*|.*-latest|.*-snapshot)$`)

// containerLists are the fields with containers, in whatever kind they are.
var containerLists = []string{"containers", "initContainers", "ephemeralContainers"}

// checkImages looks at containers, kustomize images and Helm values. What a
// kustomization or an Application replaces is not the container's fault.
func checkImages(r *run) {
	replaced := map[string]bool{}
	for _, d := range r.repo.docs {
		eachOverride(d, func(_ *node, name, tag string) {
			if tag != "" {
				replaced[name] = true
			}
		})
	}
	for _, d := range r.repo.docs {
		eachOverride(d, func(at *node, name, tag string) {
			if mutableTag.MatchString(tag) {
				r.report(d, at, "the image %s gets the tag %s, which moves", name, tag)
			}
		})
		r.containers(d, replaced)
		for _, v := range valuesOf(d) {
			r.imageValues(d, v, "", 0)
		}
		r.helmParameters(d)
	}
}

// containers looks at the images of a document's containers.
func (r *run) containers(d *document, replaced map[string]bool) {
	if d.kind == "" || d.kind == "CustomResourceDefinition" {
		return
	}
	walk(d.root, func(n *node) {
		for _, list := range containerLists {
			for _, c := range items(n, list) {
				_, v := pair(c, "image")
				if v == nil || v.Kind != yaml.ScalarNode || v.Value == "" || templatedText(v.Value) {
					continue
				}
				name, tag, digest := splitImage(v.Value)
				switch {
				case digest || replaced[name]:
				case tag == "":
					r.report(d, v, "the image %s has no tag, and so means latest", v.Value)
				case mutableTag.MatchString(tag):
					r.report(d, v, "the image %s has the tag %s, which moves", name, tag)
				}
			}
		}
	})
}

// splitImage takes an image apart.
func splitImage(image string) (name, tag string, digest bool) {
	name, _, digest = strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[:i], name[i+1:], digest
	}
	return name, "", digest
}

// eachOverride calls f for each image that a kustomization, an Application or
// a Flux Kustomization replaces; tag is "@" for a digest.
func eachOverride(d *document, f func(at *node, name, tag string)) {
	lists := [][]*node{}
	if d.is("kustomize.config.k8s.io", "Kustomization") || d.is("kustomize.config.k8s.io", "Component") {
		lists = append(lists, items(d.root, "images"))
	}
	if d.is("kustomize.toolkit.fluxcd.io", "Kustomization") {
		lists = append(lists, items(d.root, "spec", "images"))
	}
	for _, list := range lists {
		for _, e := range list {
			tag := text(e, "newTag")
			at, _ := pair(e, "newTag")
			if text(e, "digest") != "" {
				tag = "@"
			}
			f(orNode(at, e), text(e, "name"), tag)
		}
	}
	for _, spec := range appSpecs(d) {
		for _, s := range sources(spec) {
			for _, e := range items(s, "kustomize", "images") {
				name, tag, digest := splitImage(e.Value)
				if old, _, renamed := strings.Cut(name, "="); renamed {
					name = old
				}
				if digest {
					tag = "@"
				}
				f(e, name, tag)
			}
		}
	}
}

// valuesOf returns the Helm values in a document: of a values file, inline in
// an Application, of a HelmRelease.
func valuesOf(d *document) []*node {
	var out []*node
	if d.kind == "" && d.file.values {
		out = append(out, d.root)
	}
	for _, spec := range appSpecs(d) {
		for _, s := range sources(spec) {
			if v := get(s, "helm", "valuesObject"); v != nil {
				out = append(out, v)
			}
			if v := get(s, "helm", "values"); v != nil && v.Kind == yaml.ScalarNode {
				out = append(out, inline(v)...)
			}
		}
	}
	if v := get(d.root, "spec", "values"); v != nil && d.is("helm.toolkit.fluxcd.io", "HelmRelease") {
		out = append(out, v)
	}
	return out
}

// inline reads YAML in a text. Lines of a block are those of the file.
func inline(v *node) []*node {
	var doc node
	if yaml.Unmarshal([]byte(v.Value), &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	offset := v.Line
	if v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		offset--
	}
	walk(&doc, func(n *node) { n.Line += offset })
	return doc.Content
}

// imageValues looks for images in values: a mapping with repository and tag,
// or a text under "image". Depth is bounded because aliases are followed.
func (r *run) imageValues(d *document, n *node, under string, depth int) {
	if n == nil || depth > 30 {
		return
	}
	if n.Kind == yaml.SequenceNode {
		for _, e := range n.Content {
			r.imageValues(d, resolve(e), under, depth+1)
		}
		return
	}
	if k, tag := pair(n, "tag"); tag != nil && mutableTag.MatchString(tag.Value) && (strings.Contains(strings.ToLower(under), "image") || get(n, "repository") != nil) {
		r.report(d, k, "%s: the tag %s moves", strings.TrimPrefix(under+".tag", "."), tag.Value)
	}
	entries(n, func(k, v *node) {
		name := strings.TrimPrefix(under+"."+k.Value, ".")
		if k.Value == "image" && v.Kind == yaml.ScalarNode {
			if _, tag, digest := splitImage(v.Value); !digest && tag != "" && mutableTag.MatchString(tag) {
				r.report(d, k, "%s: the tag of %s moves", name, v.Value)
			}
			return
		}
		if v.Kind != yaml.ScalarNode {
			r.imageValues(d, v, name, depth+1)
		}
	})
}

// helmParameters looks at parameters that set an image's tag.
func (r *run) helmParameters(d *document) {
	for _, spec := range appSpecs(d) {
		for _, s := range sources(spec) {
			for _, p := range items(s, "helm", "parameters") {
				name, value := strings.ToLower(text(p, "name")), text(p, "value")
				if strings.Contains(name, "image") && strings.HasSuffix(name, "tag") && mutableTag.MatchString(value) {
					at, _ := pair(p, "value")
					r.report(d, at, "the parameter %s sets the tag %s, which moves", text(p, "name"), value)
				}
			}
		}
	}
}
