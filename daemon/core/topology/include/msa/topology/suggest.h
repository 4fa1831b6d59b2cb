#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msa {

// The candidate nearest to `word` by edit distance (transpositions count one, case none); "" if none is near:
// more than a third of the longer word, at least one edit, would have to change. Ties: the first candidate.
std::string NearestName(std::string_view word, const std::vector<std::string>& candidates);

// "did you mean 'booster'? " or "" — to be put between what is wrong and the list of what exists.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

// "a, b, c" with at most `limit` names, then "and N more".
std::string ListNames(const std::vector<std::string>& names, std::size_t limit = 12);

}  // namespace msa
