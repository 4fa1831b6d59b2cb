#pragma once

namespace msa::wire {

// NamdHello::fabric_provider and NamExtentPlace::fabric_provider of a namd that serves its host and is still
// starting its fabric: there is no address yet. It says hello again when there is, and NamRefresh tells it.
inline constexpr const char* kNamFabricStarting = "starting";

}  // namespace msa::wire
