#include "msa/adapters/tls/member_tls.h"

#include <fcntl.h>

#include <cerrno>

#include <openssl/err.h>

#include "openssl.h"

namespace msa {
namespace {

using tls::OpenSslText;

Result<PeerIdentity> IdentityOf(X509* certificate) { return ParseIdentityUri(tls::UriOf(certificate)); }

class Stream final : public TlsStream {
 public:
  Stream(UniqueFd fd, tls::SslPtr ssl, std::uint64_t system)
      : fd_(std::move(fd)), ssl_(std::move(ssl)), system_(system) {}

  int fd() const override { return fd_.get(); }
  const char* Error() const override { return error_.c_str(); }

  IoResult Handshake() override {
    ERR_clear_error();
    return Outcome(SSL_do_handshake(ssl_.get()), 0);
  }
  IoResult Read(char* buffer, std::size_t size) override {
    std::size_t done = 0;
    ERR_clear_error();
    const int rc = SSL_read_ex(ssl_.get(), buffer, size, &done);
    return Outcome(rc, done);
  }
  IoResult Write(const char* data, std::size_t size) override {
    std::size_t done = 0;
    ERR_clear_error();
    const int rc = SSL_write_ex(ssl_.get(), data, size, &done);
    return Outcome(rc, done);
  }

  Result<PeerIdentity> Peer() const override {
    if (SSL_is_init_finished(ssl_.get()) == 0)
      return msa::Error(Code::kFailedPrecondition, "the TLS handshake is under way");
    X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
    if (certificate == nullptr || SSL_get_verify_result(ssl_.get()) != X509_V_OK)
      return msa::Error(Code::kUnauthenticated, "the peer has shown no certificate of this system");
    auto identity = IdentityOf(certificate);
    if (!identity.ok())
      return msa::Error(Code::kUnauthenticated, "the peer's certificate: {}", identity.status().message());
    if (identity->system != system_)
      return msa::Error(Code::kUnauthenticated, "the peer is of system {:016x}, not of {:016x}",
                        identity->system, system_);
    return identity;
  }

  Instant PeerUntil() const override {
    X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
    if (certificate == nullptr) return {};
    const auto end = EndOfCertificate(tls::CertificatePem(certificate));
    return end.ok() ? *end : Instant{};
  }

 private:
  IoResult Outcome(int rc, std::size_t done) {
    const int saved_errno = errno;
    if (rc > 0) return {IoOutcome::kDone, done};
    switch (SSL_get_error(ssl_.get(), rc)) {
      case SSL_ERROR_WANT_READ:
        return {IoOutcome::kWantRead, 0};
      case SSL_ERROR_WANT_WRITE:
        return {IoOutcome::kWantWrite, 0};
      case SSL_ERROR_ZERO_RETURN:
        return {IoOutcome::kClosed, 0};
      case SSL_ERROR_SYSCALL:
        if (saved_errno == 0 || saved_errno == EPIPE || saved_errno == ECONNRESET)
          return {IoOutcome::kClosed, 0};
        return Fail(ErrnoError(saved_errno, "socket").message());
      default:
        // A peer that died sends no close_notify; that is its end, not a fault of the stream.
        if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
          ERR_clear_error();
          return {IoOutcome::kClosed, 0};
        }
        return Fail("TLS: " + OpenSslText() + VerifyText());
    }
  }
  // Why the peer's certificate was not accepted: OpenSSL's errors leave that out.
  std::string VerifyText() const {
    const long result = SSL_get_verify_result(ssl_.get());
    return result == X509_V_OK ? "" : std::string(" (") + X509_verify_cert_error_string(result) + ")";
  }
  IoResult Fail(std::string why) {
    error_ = std::move(why);
    return {IoOutcome::kError, 0};
  }

  UniqueFd fd_;  // closed after the SSL object is gone: declared before it
  tls::SslPtr ssl_;
  std::uint64_t system_;
  std::string error_;
};

}  // namespace

struct MemberTls::Impl {
  tls::ContextPtr context;
  PeerIdentity self;
  Instant until;

  Result<std::unique_ptr<TlsStream>> Make(UniqueFd socket, void (*set_role)(SSL*)) const {
    ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
    tls::SslPtr ssl(SSL_new(context.get()));
    if (ssl == nullptr || SSL_set_fd(ssl.get(), socket.get()) != 1)
      return Error(Code::kInternal, "make a TLS stream: {}", OpenSslText());
    set_role(ssl.get());
    return std::unique_ptr<TlsStream>(
        std::make_unique<Stream>(std::move(socket), std::move(ssl), self.system));
  }
};

MemberTls::MemberTls(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MemberTls::~MemberTls() = default;
const PeerIdentity& MemberTls::self() const { return impl_->self; }
Instant MemberTls::until() const { return impl_->until; }

Result<std::shared_ptr<const MemberTls>> MemberTls::Make(const Credentials& credentials) {
  auto impl = std::make_unique<Impl>();
  const tls::KeyPtr key = tls::ParseKey(credentials.key);
  const tls::CertificatePtr certificate = tls::ParseCertificate(credentials.certificate);
  const tls::CertificatePtr authority = tls::ParseCertificate(credentials.authority);
  if (key == nullptr || certificate == nullptr || authority == nullptr)
    return Error(Code::kInvalidArgument, "credentials without key, certificate or authority: {}",
                 OpenSslText());
  MSA_ASSIGN_OR_RETURN(impl->self, IdentityOf(certificate.get()));
  MSA_ASSIGN_OR_RETURN(impl->until, EndOfCertificate(credentials.certificate));
  impl->context.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* const context = impl->context.get();
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_use_certificate(context, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1 ||
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1 ||
      SSL_CTX_set_num_tickets(context, 0) != 1)
    return Error(Code::kInvalidArgument, "credentials do not fit together: {}", OpenSslText());
  // No resumption: each connection shows its certificate.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // A record is one read instead of two; who reads goes on until nothing is left (connection.cc).
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return std::shared_ptr<const MemberTls>(new MemberTls(std::move(impl)));
}

Result<std::unique_ptr<TlsStream>> MemberTls::Client(UniqueFd socket) const {
  return impl_->Make(std::move(socket), SSL_set_connect_state);
}
Result<std::unique_ptr<TlsStream>> MemberTls::Server(UniqueFd socket) const {
  return impl_->Make(std::move(socket), SSL_set_accept_state);
}

}  // namespace msa
