package decrypt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/keyservice"
	"google.golang.org/grpc"

	"github.com/rutterhq/rutter"
)

// service answers the library's questions for a data key from keys in memory.
// It serves one file and remembers why a recipient did not open it.
type service struct {
	// ctx bounds the whole file; the library passes none of its own.
	ctx  context.Context //nolint:containedctx // the library asks with context.Background()
	keys []*keySet
	http httpClient

	attempts []attempt
}

// attempt is one recipient that did not open the file.
type attempt struct {
	recipient string
	err       error
}

// Errors of one recipient.
var (
	errNoKey   = errors.New("no such key")
	errDamaged = errors.New("the sealed data key is damaged")
)

var _ keyservice.KeyServiceClient = (*service)(nil)

// Encrypt implements keyservice.KeyServiceClient; Rutter only reads.
func (s *service) Encrypt(context.Context, *keyservice.EncryptRequest, ...grpc.CallOption) (*keyservice.EncryptResponse, error) {
	return nil, rutter.Errorf(rutter.CodeUnsupported, "this key service only opens")
}

// Decrypt implements keyservice.KeyServiceClient.
func (s *service) Decrypt(_ context.Context, req *keyservice.DecryptRequest, _ ...grpc.CallOption) (*keyservice.DecryptResponse, error) {
	recipient, plain, err := s.open(req.GetKey(), req.GetCiphertext())
	if err != nil {
		s.attempts = append(s.attempts, attempt{recipient: recipient, err: err})
		return nil, err
	}
	return &keyservice.DecryptResponse{Plaintext: plain}, nil
}

// open tries one recipient. Its name is for messages and holds no secret.
func (s *service) open(key *keyservice.Key, sealed []byte) (recipient string, plain []byte, err error) {
	switch k := key.GetKeyType().(type) {
	case *keyservice.Key_AgeKey:
		plain, err = openAge(s.keys, sealed)
		return "age " + k.AgeKey.GetRecipient(), plain, err
	case *keyservice.Key_PgpKey:
		plain, err = openPGP(s.keys, sealed)
		return "PGP " + k.PgpKey.GetFingerprint(), plain, err
	case *keyservice.Key_KmsKey:
		plain, err = s.openAWS(k.KmsKey, sealed)
		return "AWS KMS " + k.KmsKey.GetArn(), plain, err
	case *keyservice.Key_GcpKmsKey:
		plain, err = s.openGCP(k.GcpKmsKey, sealed)
		return "GCP KMS " + k.GcpKmsKey.GetResourceId(), plain, err
	case *keyservice.Key_AzureKeyvaultKey:
		plain, err = s.openAzure(k.AzureKeyvaultKey, sealed)
		return fmt.Sprintf("Azure Key Vault %s/keys/%s", k.AzureKeyvaultKey.GetVaultUrl(), k.AzureKeyvaultKey.GetName()), plain, err
	case *keyservice.Key_VaultKey:
		plain, err = s.openVault(k.VaultKey, sealed)
		return fmt.Sprintf("Vault %s/v1/%s/keys/%s", k.VaultKey.GetVaultAddress(), k.VaultKey.GetEnginePath(), k.VaultKey.GetKeyName()), plain, err
	case *keyservice.Key_HckmsKey:
		return "Huawei KMS " + k.HckmsKey.GetKeyId(), nil, rutter.Errorf(rutter.CodeUnsupported, "Rutter has no form for Huawei Cloud credentials")
	}
	return "a recipient of an unknown kind", nil, rutter.Errorf(rutter.CodeUnsupported, "Rutter does not know this kind of recipient")
}

// explain turns the attempts into one error: what would open the file, and what to do.
func (s *service) explain(where place, project string, meta *sops.Metadata) error {
	if err := context.Cause(s.ctx); err != nil && !errors.Is(err, errSilent) {
		return err
	}
	var recipients, notes []string
	code := rutter.CodeForbidden
	for _, a := range s.attempts {
		if !slices.Contains(recipients, a.recipient) {
			recipients = append(recipients, a.recipient)
		}
		if !errors.Is(a.err, errNoKey) {
			notes = append(notes, fmt.Sprintf("%s: %s", a.recipient, a.err))
		}
		switch {
		case rutter.CodeOf(a.err) == rutter.CodeUnavailable:
			code = rutter.CodeUnavailable
		case errors.Is(a.err, errDamaged) && code == rutter.CodeForbidden:
			code = rutter.CodeInvalid
		}
	}
	what := "no configured key opens it"
	if n := len(meta.KeyGroups); n > 1 {
		what = fmt.Sprintf("it needs %d of its %d key groups, more than the configured keys open", meta.ShamirThreshold, n)
	}
	msg := fmt.Sprintf("is sealed with SOPS and %s; it is sealed for %s", what, strings.Join(shorten(recipients), ", "))
	if len(notes) > 0 {
		msg += " (" + strings.Join(shorten(notes), "; ") + ")"
	}
	return where.errorf(code, "%s: %s", msg, remedy(code, project))
}

func remedy(code rutter.Code, project string) string {
	switch code { //nolint:exhaustive // the others ask for a key
	case rutter.CodeUnavailable:
		return "it is tried again; check the network to the key service and its credentials"
	case rutter.CodeInvalid:
		return "run 'sops updatekeys' on it, or seal it again"
	}
	whose := "for all projects"
	if project != "" {
		whose = fmt.Sprintf("with project: %s, or without a project for all", project)
	}
	return fmt.Sprintf("add a Secret labelled %s: %s with the key of one of them to the control plane's namespace (%s)", SecretLabel, SecretType, whose)
}

// shorten keeps a list readable in one line.
func shorten(list []string) []string {
	const most = 8
	if len(list) <= most {
		return list
	}
	return append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", len(list)-most))
}
