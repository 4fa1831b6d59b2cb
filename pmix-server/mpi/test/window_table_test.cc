#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "window_table_calls.h"

namespace {

// Handles as Open MPI has them: addresses.
std::uintptr_t Key(std::size_t number) { return 0x5555'0000'0000 + number * 0x190; }
void* WindowOf(std::uintptr_t key) { return reinterpret_cast<void*>(key * 2); }

class WindowTable : public testing::Test {
 protected:
  void TearDown() override {
    for (const auto& [key, window] : model_) Remove(key);
    EXPECT_EQ(UsedSlots(), 0u);
  }
  void Add(std::uintptr_t key) {
    ASSERT_EQ(Insert(key, WindowOf(key)), 0);
    model_[key] = WindowOf(key);
  }
  void Drop(std::uintptr_t key) {
    Remove(key);
    model_.erase(key);
  }
  void Compare() const {
    for (const auto& [key, window] : model_) ASSERT_EQ(Find(key), window);
  }
  std::map<std::uintptr_t, void*> model_;
};

TEST_F(WindowTable, UsesTheSlotsOfWindowsThatAreGoneAgain) {
  Add(Key(1));
  for (std::size_t i = 2; i < 1'000'000; ++i) {
    const std::uintptr_t key = Key(i);
    ASSERT_EQ(Insert(key, WindowOf(key)), 0);
    ASSERT_EQ(Find(key), WindowOf(key));
    Remove(key);
    ASSERT_EQ(Find(key), nullptr);
  }
  EXPECT_LT(UsedSlots(), 10u);
  EXPECT_EQ(Levels(), 1u) << "one window at a time, but for one that stays";
  Compare();
}

TEST_F(WindowTable, SlotsThatNoSearchGoesPastAreFreeAtOnce) {
  // Three that begin at one slot, and one at the next.
  std::vector<std::uintptr_t> same;
  std::uintptr_t next = 0;
  for (std::size_t i = 1; same.size() < 3 || next == 0; ++i) {
    if (Begin(Key(i)) == 100 && same.size() < 3) same.push_back(Key(i));
    if (Begin(Key(i)) == 101) next = Key(i);
  }
  for (const std::uintptr_t key : same) Add(key);
  Add(next);
  Drop(same[0]);
  EXPECT_EQ(UsedSlots(), 4u) << "others lie behind it";
  Compare();
  Drop(same[1]);
  Drop(same[2]);
  EXPECT_EQ(UsedSlots(), 3u) << "two that the last one's search goes past";
  Compare();
  Drop(next);
  EXPECT_EQ(UsedSlots(), 0u);
}

TEST_F(WindowTable, GrowsWithWindowsThatAreOpenAtOnce) {
  for (std::size_t i = 0; i < 20'000; ++i) Add(Key(i));
  Compare();
  EXPECT_EQ(Find(Key(20'001)), nullptr);
  EXPECT_EQ(Levels(), 3u);
  for (std::size_t i = 0; i < 20'000; i += 2) Drop(Key(i));
  Compare();
  EXPECT_EQ(Find(Key(2)), nullptr);
  for (std::size_t i = 0; i < 20'000; i += 2) Add(Key(i));
  Compare();
}

TEST_F(WindowTable, FindsWhatIsThereWhateverComesAndGoes) {
  std::minstd_rand random(7);
  for (int i = 0; i < 200'000; ++i) {
    const std::uintptr_t key = Key(random() % 6000);
    if (model_.count(key) != 0)
      Drop(key);
    else
      Add(key);
    ASSERT_EQ(Find(key), model_.count(key) != 0 ? WindowOf(key) : nullptr);
    if (i % 20'000 == 0) Compare();
  }
  Compare();
}

TEST_F(WindowTable, IsSearchedWhileOthersComeAndGo) {
  for (std::size_t i = 0; i < 1000; ++i) Add(Key(i));
  std::atomic<bool> stop{false};
  std::atomic<int> missed{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r)
    readers.emplace_back([&, r] {
      for (std::size_t i = static_cast<std::size_t>(r); !stop; ++i) {
        if (Find(Key(i % 1000)) != WindowOf(Key(i % 1000))) ++missed;
        if (Find(Key(100'000 + i % 1000)) != nullptr) ++missed;
      }
    });
  std::minstd_rand random(3);
  std::vector<std::uintptr_t> others;
  for (std::size_t i = 0; i < 100'000; ++i) {
    others.push_back(Key(1000 + i % 50'000));
    ASSERT_EQ(Insert(others.back(), WindowOf(others.back())), 0);
    if (others.size() < 4000) continue;
    std::swap(others[random() % others.size()], others.back());
    Remove(others.back());
    others.pop_back();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  for (const std::uintptr_t key : others) Remove(key);
  EXPECT_EQ(missed, 0);
}

}  // namespace
