#pragma once
// Lists of strings that copies share: the environment of a user's jobs is the same few kilobytes in each of
// them. Not for several threads at once, but for copies that were made before.

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "msa/base/wire.h"

namespace msa {

// A std::vector<std::string> whose copies cost nothing; one that is changed becomes its own.
class SharedStrings {
 public:
  using List = std::vector<std::string>;
  using value_type = std::string;
  using const_reference = const std::string&;
  using const_iterator = List::const_iterator;
  using iterator = const_iterator;
  using size_type = List::size_type;
  using difference_type = List::difference_type;

  SharedStrings() = default;
  SharedStrings(List list) { *this = std::move(list); }  // NOLINT: stands for the list wherever one is given
  SharedStrings(std::initializer_list<std::string> list) : SharedStrings(List(list)) {}
  SharedStrings& operator=(List list) {
    list_ = list.empty() ? nullptr : std::make_shared<const List>(std::move(list));
    return *this;
  }
  SharedStrings& operator=(std::initializer_list<std::string> list) { return *this = List(list); }

  const List& list() const noexcept {
    static const List kNone;
    return list_ ? *list_ : kNone;
  }
  operator const List&() const noexcept { return list(); }  // NOLINT: as above
  const_iterator begin() const noexcept { return list().begin(); }
  const_iterator end() const noexcept { return list().end(); }
  size_type size() const noexcept { return list().size(); }
  bool empty() const noexcept { return list().empty(); }
  const_reference operator[](size_type index) const { return list()[index]; }
  void clear() noexcept { list_.reset(); }
  void push_back(std::string text) {
    List own = list();
    own.push_back(std::move(text));
    *this = std::move(own);
  }
  bool operator==(const SharedStrings& other) const { return list_ == other.list_ || list() == other.list(); }
  bool SharesWith(const SharedStrings& other) const noexcept { return list_ == other.list_; }

  // On the wire it is the list.
  template <class A>
  void Fields(A& a) {
    if constexpr (requires { typename A::Encodes; }) {
      a(const_cast<List&>(list()));  // encoders only read
    } else {
      List own;
      a(own);
      *this = std::move(own);
    }
  }

 private:
  friend class StringsPool;
  std::shared_ptr<const List> list_;
};

// Makes equal lists one. A list that nobody holds any more is forgotten.
class StringsPool {
 public:
  void Intern(SharedStrings& strings);

 private:
  std::unordered_map<std::size_t, std::weak_ptr<const SharedStrings::List>> known_;  // by hash of the content
  std::size_t sweep_at_ = 64;
};

}  // namespace msa
