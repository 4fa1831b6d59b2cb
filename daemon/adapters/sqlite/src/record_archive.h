#pragma once
// How records lie in the store: the wire format of msa/base/wire.h with every struct, the record itself
// included, behind its length. So fields may be appended to any struct: a record of an older build ends early
// and leaves the new fields at their defaults, one of a newer build has bytes behind the known fields that
// are passed over.

#include <string>
#include <string_view>

#include "msa/base/wire.h"

namespace msa::sqlite {

using RecordEncoder = wire::BasicEncoder<wire::Nesting::kLength>;
using RecordDecoder = wire::BasicDecoder<wire::Nesting::kLength>;

template <class Record>
std::string EncodeRecord(const Record& record) {
  std::string out;
  RecordEncoder encoder(out);
  encoder(const_cast<Record&>(record));  // the encoder only reads
  return out;
}

// False: truncated, over-long or inconsistent.
template <class Record>
bool DecodeRecord(std::string_view blob, Record& out) {
  RecordDecoder decoder(blob);
  decoder(out);
  return !blob.empty() && decoder.ok() && decoder.at_end();
}

}  // namespace msa::sqlite
