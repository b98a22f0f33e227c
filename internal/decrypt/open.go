package decrypt

import (
	"context"
	"strings"
	"time"

	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	"github.com/getsops/sops/v3/keyservice"
	"github.com/getsops/sops/v3/stores"

	"github.com/rutterhq/rutter"
)

// openFile opens a file that is sealed in format f and checks its MAC.
func (d *Decrypter) openFile(ctx context.Context, project string, where place, f format, data []byte) ([]byte, error) {
	doc, err := load(where, f, data)
	if err != nil {
		return nil, err
	}
	branches, metadata, err := stores.ExtractMetadata(doc.branches, doc.metadata)
	if err != nil {
		return nil, where.errorf(rutter.CodeInvalid, "is sealed with SOPS, but its metadata (sops) cannot be read: seal it again with the sops tool")
	}
	tree := sops.Tree{Branches: branches, Metadata: metadata}
	key, err := d.dataKey(ctx, project, where, &tree.Metadata)
	if err != nil {
		return nil, err
	}
	mac, comments, err := openTree(where, tree, key)
	if err != nil {
		return nil, err
	}
	if err := checkMAC(where, &tree.Metadata, key, mac); err != nil {
		return nil, err
	}
	plain, err := doc.write(tree.Branches, comments)
	if err != nil {
		return nil, where.errorf(rutter.CodeInvalid, "was opened, but its content cannot be written as %s", f)
	}
	return plain, nil
}

// dataKey asks the key service for the key that seals the values.
func (d *Decrypter) dataKey(ctx context.Context, project string, where place, meta *sops.Metadata) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.timeout, errSilent)
	defer cancel()
	svc := &service{ctx: ctx, keys: d.keys.Load().of(project), http: d.http}
	key, err := meta.GetDataKeyWithKeyServices([]keyservice.KeyServiceClient{svc}, nil)
	if err == nil {
		return key, nil
	}
	err = svc.explain(where, project, meta)
	if rutter.CodeOf(err) == rutter.CodeUnavailable {
		d.log.Warn("SOPS key service did not answer", "file", where.file, "object", where.object, "error", err)
	}
	return nil, err
}

var errSilent = rutter.Errorf(rutter.CodeUnavailable, "the key service did not answer in time")

// openTree opens the values in place and returns the MAC of what they hold, and
// the comments that were sealed.
func openTree(where place, tree sops.Tree, key []byte) (mac string, comments map[string]string, err error) {
	c := &noting{Cipher: aes.NewCipher(), comments: map[string]string{}}
	mac, err = tree.Decrypt(key, c)
	switch {
	case err == nil:
		return mac, c.comments, nil
	case c.path != "":
		return "", nil, where.errorf(rutter.CodeInvalid, "is damaged: the value of %s cannot be opened with the file's key; it was changed without sops, or moved from another file. Seal it again with the sops tool", c.path)
	}
	return "", nil, where.errorf(rutter.CodeInvalid, "is damaged: it holds values that SOPS cannot have written. Seal it again with the sops tool")
}

// checkMAC compares the MAC of the values with the one that the file carries.
func checkMAC(where place, meta *sops.Metadata, key []byte, mac string) error {
	original, err := aes.NewCipher().Decrypt(meta.MessageAuthenticationCode, key, meta.LastModified.Format(time.RFC3339))
	switch {
	case meta.MessageAuthenticationCode == "":
		return where.errorf(rutter.CodeInvalid, "carries no MAC (sops.mac), so that nobody can tell whether it was changed: seal it again with the sops tool")
	case err != nil:
		return where.errorf(rutter.CodeInvalid, "is damaged: its MAC (sops.mac) cannot be opened. Seal it again with the sops tool")
	case original != mac:
		return where.errorf(rutter.CodeInvalid, "was changed after it was sealed: its MAC (sops.mac) does not match. Check who changed it, then seal it again with 'sops --ignore-mac' and save")
	}
	return nil
}

// noting is the library's cipher; it remembers which value could not be opened,
// because the library's error quotes values, and what sealed comments say.
type noting struct {
	aes.Cipher

	path     string
	comments map[string]string
}

// Decrypt implements sops.Cipher.
func (c *noting) Decrypt(ciphertext string, key []byte, path string) (any, error) {
	v, err := c.Cipher.Decrypt(ciphertext, key, path)
	if err != nil {
		c.path = strings.TrimSuffix(path, ":")
		return nil, rutter.Errorf(rutter.CodeInvalid, "not opened")
	}
	c.path = ""
	if comment, ok := v.(sops.Comment); ok {
		c.comments[ciphertext] = comment.Value
	}
	return v, nil
}
