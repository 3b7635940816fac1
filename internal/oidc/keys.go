package oidc

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	_ "crypto/sha256" // for crypto.Hash
	_ "crypto/sha512"
	"encoding/base64"
	"errors"
	"math/big"
)

// minRSA is the shortest modulus that is believed, in bits.
const minRSA = 2048

// algorithm is a way to sign. There is no entry for "none", nor for secrets that both sides share: what is not in the
// table does not exist.
type algorithm struct {
	hash  crypto.Hash
	kind  string         // of key
	curve elliptic.Curve // nil if it has none
	pss   bool
}

var algorithms = map[string]algorithm{
	"RS256": {hash: crypto.SHA256, kind: "RSA"},
	"RS384": {hash: crypto.SHA384, kind: "RSA"},
	"RS512": {hash: crypto.SHA512, kind: "RSA"},
	"PS256": {hash: crypto.SHA256, kind: "RSA", pss: true},
	"PS384": {hash: crypto.SHA384, kind: "RSA", pss: true},
	"PS512": {hash: crypto.SHA512, kind: "RSA", pss: true},
	"ES256": {hash: crypto.SHA256, kind: "EC", curve: elliptic.P256()},
	"ES384": {hash: crypto.SHA384, kind: "EC", curve: elliptic.P384()},
	"ES512": {hash: crypto.SHA512, kind: "EC", curve: elliptic.P521()},
	"EdDSA": {kind: "OKP"},
}

// verify checks a signature with a key, which must be of the algorithm's kind.
func (a algorithm) verify(key crypto.PublicKey, signed, signature []byte) bool {
	if k, ok := key.(ed25519.PublicKey); ok {
		return a.kind == "OKP" && ed25519.Verify(k, signed, signature)
	}
	if a.hash == 0 {
		return false
	}
	h := a.hash.New()
	h.Write(signed)
	sum := h.Sum(nil)
	switch k := key.(type) {
	case *rsa.PublicKey:
		switch {
		case a.kind != "RSA":
			return false
		case a.pss:
			return rsa.VerifyPSS(k, a.hash, sum, signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
		}
		return rsa.VerifyPKCS1v15(k, a.hash, sum, signature) == nil
	case *ecdsa.PublicKey:
		if a.kind != "EC" || k.Curve != a.curve {
			return false
		}
		size := (a.curve.Params().BitSize + 7) / 8 // two numbers of that size, one after the other
		return len(signature) == 2*size && ecdsa.Verify(k, sum, new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:]))
	}
	return false
}

// publicKey is one of the provider's.
type publicKey struct {
	id, algorithm string
	key           crypto.PublicKey
}

// fits says whether a token may name this key. A key that has an algorithm is for that one alone.
func (k publicKey) fits(algorithm, id string) bool {
	return (k.algorithm == "" || k.algorithm == algorithm) && (id == "" || k.id == id)
}

// jwk is a key as providers write it.
type jwk struct {
	ID        string `json:"kid"`
	Kind      string `json:"kty"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	Curve     string `json:"crv"`
	N         string `json:"n"`
	E         string `json:"e"`
	X         string `json:"x"`
	Y         string `json:"y"`
}

// fetchKeys asks for the provider's keys. Those that are for something else, or not understood, are left out.
func (s *SignOn) fetchKeys(ctx context.Context, p *provider) ([]publicKey, error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := s.ask(ctx, p.Keys, "", &set); err != nil {
		return nil, err
	}
	var out []publicKey
	for _, k := range set.Keys {
		if k.Use == "enc" {
			continue
		}
		if key, err := k.public(); err == nil {
			out = append(out, publicKey{id: k.ID, algorithm: k.Algorithm, key: key})
		}
	}
	return out, nil
}

var errKey = errors.New("a key of the provider's is not understood")

func (k jwk) public() (crypto.PublicKey, error) {
	switch k.Kind {
	case "RSA":
		n, e := k.number(k.N), k.number(k.E)
		if n.BitLen() < minRSA || !e.IsInt64() || e.Int64() < 3 || e.Int64() > 1<<31-1 {
			return nil, errKey
		}
		return &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
	case "EC":
		curve, ok := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}[k.Curve]
		if !ok {
			return nil, errKey
		}
		size := (curve.Params().BitSize + 7) / 8
		point := make([]byte, 1+2*size)
		point[0] = 4 // uncompressed
		x, y := k.number(k.X), k.number(k.Y)
		if x.BitLen() > 8*size || y.BitLen() > 8*size {
			return nil, errKey
		}
		x.FillBytes(point[1 : 1+size])
		y.FillBytes(point[1+size:])
		return ecdsa.ParseUncompressedPublicKey(curve, point)
	case "OKP":
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || k.Curve != "Ed25519" || len(x) != ed25519.PublicKeySize {
			return nil, errKey
		}
		return ed25519.PublicKey(x), nil
	}
	return nil, errKey
}

// number is 0 for what is none.
func (jwk) number(text string) *big.Int {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return new(big.Int)
	}
	return new(big.Int).SetBytes(b)
}
