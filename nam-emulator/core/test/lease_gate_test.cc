#include "msa/namd/lease_gate.h"

#include <gtest/gtest.h>

#include "book_fixture.h"

namespace msa::namd {
namespace {

using test::Blob;
using test::LeaseOf;
using test::WelcomeOf;

Code CodeOf(const LeaseGate& gate, const wire::NamLease& lease) {
  return gate.Check(Blob(lease)).status().code();
}

TEST(LeaseGate, TakesNothingBeforeTheWelcome) {
  LeaseGate gate(test::Sign);
  EXPECT_EQ(CodeOf(gate, LeaseOf(1)), Code::kUnavailable);
}

TEST(LeaseGate, TakesWhatTheWelcomeListsAndWhatIsNewer) {
  LeaseGate gate(test::Sign);
  gate.Open(WelcomeOf({LeaseId(3), LeaseId(5)}, 8));
  EXPECT_EQ(CodeOf(gate, LeaseOf(3)), Code::kOk);
  EXPECT_EQ(CodeOf(gate, LeaseOf(5)), Code::kOk);
  EXPECT_EQ(CodeOf(gate, LeaseOf(9)), Code::kOk);
  EXPECT_EQ(CodeOf(gate, LeaseOf(~std::uint64_t{0})), Code::kOk);
}

TEST(LeaseGate, RefusesALeaseThatEndedBeforeTheWelcome) {
  LeaseGate gate(test::Sign);
  gate.Open(WelcomeOf({LeaseId(3)}, 8));
  for (const std::uint64_t lease : {0, 1, 4, 8})
    EXPECT_EQ(CodeOf(gate, LeaseOf(lease)), Code::kFailedPrecondition) << lease;
}

TEST(LeaseGate, RefusesALeaseOnceItIsRevoked) {
  LeaseGate gate(test::Sign);
  gate.Open(WelcomeOf({LeaseId(3)}, 3));
  for (const std::uint64_t lease : {3, 10, 12, 11, 14, 10, 13, 4}) {
    gate.Revoke(LeaseId(lease));
    EXPECT_FALSE(gate.IsLive(LeaseId(lease))) << lease;
  }
  for (const std::uint64_t lease : {3, 4, 10, 11, 12, 13, 14})
    EXPECT_FALSE(gate.IsLive(LeaseId(lease))) << lease;
  for (const std::uint64_t lease : {5, 9, 15}) EXPECT_TRUE(gate.IsLive(LeaseId(lease))) << lease;
}

TEST(LeaseGate, RefusesAnotherSystemsLease) {
  LeaseGate gate(test::Sign);
  gate.Open(WelcomeOf());
  wire::NamLease lease = LeaseOf(1);
  lease.system = 4;
  EXPECT_EQ(CodeOf(gate, lease), Code::kUnauthenticated);
}

TEST(LeaseGate, RefusesEveryLeaseInWhichOneBitWasChanged) {
  LeaseGate gate(test::Sign);
  gate.Open(WelcomeOf());
  const std::string good = Blob(LeaseOf(1));
  ASSERT_TRUE(gate.Check(good).ok());
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(gate.Check(bad).ok()) << "bit " << bit;
  }
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(gate.Check(good.substr(0, size)).ok()) << size;
}

}  // namespace
}  // namespace msa::namd
