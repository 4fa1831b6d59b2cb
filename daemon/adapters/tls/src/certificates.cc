#include "msa/adapters/tls/certificates.h"

#include <array>

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

#include "openssl.h"

namespace msa {
namespace {

using tls::OpenSslText;

Status Failed(std::string_view what) { return Error(Code::kInternal, "{}: {}", what, OpenSslText()); }

Result<tls::KeyPtr> MakeKey() {
  tls::KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("make a key");
  return key;
}

bool SetName(X509_NAME* name, const std::string& common) {
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>(common.data()),
                                    static_cast<int>(common.size()), -1, 0) == 1;
}

// RFC 5280, 4.1.2.2: positive, at most 20 octets; random, so that no state is needed.
bool SetSerial(X509* certificate) {
  std::array<unsigned char, 16> random{};
  if (RAND_bytes(random.data(), random.size()) != 1) return false;
  random[0] &= 0x7fU;
  random[15] |= 1U;
  const std::unique_ptr<BIGNUM, tls::Deleter<BN_free>> number(
      BN_bin2bn(random.data(), random.size(), nullptr));
  return number != nullptr && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool SetTime(ASN1_TIME* time, Instant at) {
  return ASN1_TIME_set(time, std::chrono::system_clock::to_time_t(at)) != nullptr;
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, tls::Deleter<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

}  // namespace

std::string Sha256Hex(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

Result<Instant> EndOfCertificate(const std::string& certificate) {
  const tls::CertificatePtr parsed = tls::ParseCertificate(certificate);
  std::tm end{};
  if (parsed == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(parsed.get()), &end) != 1)
    return Error(Code::kInvalidArgument, "this is no certificate: {}", OpenSslText());
  return std::chrono::time_point_cast<Millis>(std::chrono::system_clock::from_time_t(::timegm(&end)));
}

Result<CertificateRequest> MakeCertificateRequest() {
  MSA_ASSIGN_OR_RETURN(const tls::KeyPtr key, MakeKey());
  const tls::RequestPtr request(X509_REQ_new());
  const tls::BioPtr bio(BIO_new(BIO_s_mem()));
  if (request == nullptr || bio == nullptr || X509_REQ_set_pubkey(request.get(), key.get()) != 1 ||
      X509_REQ_sign(request.get(), key.get(), EVP_sha256()) == 0 ||
      PEM_write_bio_X509_REQ(bio.get(), request.get()) != 1)
    return Failed("make a certificate request");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return CertificateRequest{.key = tls::KeyPem(key.get()),
                            .request = std::string(data, static_cast<std::size_t>(size))};
}

struct CertificateAuthority::Impl {
  tls::KeyPtr key;
  tls::CertificatePtr certificate;
  std::string pem;
};

CertificateAuthority::CertificateAuthority(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CertificateAuthority::CertificateAuthority(CertificateAuthority&&) noexcept = default;
CertificateAuthority& CertificateAuthority::operator=(CertificateAuthority&&) noexcept = default;
CertificateAuthority::~CertificateAuthority() = default;

const std::string& CertificateAuthority::certificate() const { return impl_->pem; }

Result<CertificateAuthority> CertificateAuthority::Make(std::uint64_t system, Instant now) {
  auto impl = std::make_unique<Impl>();
  MSA_ASSIGN_OR_RETURN(impl->key, MakeKey());
  impl->certificate.reset(X509_new());
  X509* const certificate = impl->certificate.get();
  if (certificate == nullptr || X509_set_version(certificate, X509_VERSION_3) != 1 ||
      !SetSerial(certificate) || !SetTime(X509_getm_notBefore(certificate), now - kClockSkew) ||
      !SetTime(X509_getm_notAfter(certificate), now + kAuthorityLife) ||
      !SetName(X509_get_subject_name(certificate), fmt::format("msa {:016x}", system)) ||
      X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) != 1 ||
      X509_set_pubkey(certificate, impl->key.get()) != 1 ||
      !AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(certificate, certificate, NID_key_usage, "critical,keyCertSign") ||
      !AddExtension(certificate, certificate, NID_subject_key_identifier, "hash") ||
      X509_sign(certificate, impl->key.get(), EVP_sha256()) == 0)
    return Failed("make the system's certificate");
  impl->pem = tls::CertificatePem(certificate);
  return CertificateAuthority(std::move(impl));
}

Result<CertificateAuthority> CertificateAuthority::Parse(const std::string& text) {
  auto impl = std::make_unique<Impl>();
  impl->key = tls::ParseKey(text);
  impl->certificate = tls::ParseCertificate(text);
  if (impl->key == nullptr || impl->certificate == nullptr ||
      X509_check_private_key(impl->certificate.get(), impl->key.get()) != 1)
    return Error(Code::kInvalidArgument, "no key with its certificate: {}", OpenSslText());
  impl->pem = tls::CertificatePem(impl->certificate.get());
  return CertificateAuthority(std::move(impl));
}

std::string CertificateAuthority::Serialize() const { return tls::KeyPem(impl_->key.get()) + impl_->pem; }

Result<std::string> CertificateAuthority::Issue(const std::string& request, const PeerIdentity& identity,
                                                Instant now, std::chrono::seconds life) const {
  // The URI goes through OpenSSL's configuration syntax: nothing of it may stand in a name.
  MSA_RETURN_IF_ERROR(ParseIdentityUri(ToUri(identity)).status());
  const tls::BioPtr bio(BIO_new_mem_buf(request.data(), static_cast<int>(request.size())));
  const tls::RequestPtr parsed(PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr));
  EVP_PKEY* const key = parsed == nullptr ? nullptr : X509_REQ_get0_pubkey(parsed.get());
  if (key == nullptr || EVP_PKEY_get_base_id(key) != EVP_PKEY_EC || EVP_PKEY_get_bits(key) != 256 ||
      X509_REQ_verify(parsed.get(), key) != 1)
    return Error(Code::kInvalidArgument, "certificate request is not one of a P-256 key, signed by it: {}",
                 OpenSslText());
  const tls::CertificatePtr owner(X509_new());
  X509* const certificate = owner.get();
  X509* const issuer = impl_->certificate.get();
  if (certificate == nullptr || X509_set_version(certificate, X509_VERSION_3) != 1 ||
      !SetSerial(certificate) || !SetTime(X509_getm_notBefore(certificate), now - kClockSkew) ||
      !SetTime(X509_getm_notAfter(certificate), now + life) ||
      !SetName(X509_get_subject_name(certificate), fmt::format("msa {}", ToText(identity.role))) ||
      X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) != 1 ||
      X509_set_pubkey(certificate, key) != 1 ||
      !AddExtension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(certificate, issuer, NID_key_usage, "critical,digitalSignature") ||
      !AddExtension(certificate, issuer, NID_ext_key_usage, "serverAuth,clientAuth") ||
      !AddExtension(certificate, issuer, NID_subject_alt_name, "URI:" + ToUri(identity)) ||
      X509_sign(certificate, impl_->key.get(), EVP_sha256()) == 0)
    return Failed("issue a certificate");
  return tls::CertificatePem(certificate);
}

}  // namespace msa
