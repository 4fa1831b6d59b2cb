// {fmt} as a part of the plugin: Debian has it as a shared library only, which every srun and slurmstepd
// would load and bind, with libstdc++, before it does anything. What {fmt}'s own src/format.cc compiles.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API dragonbox::decimal_fp<float> dragonbox::to_decimal(float value) noexcept;
template FMT_API dragonbox::decimal_fp<double> dragonbox::to_decimal(double value) noexcept;
template FMT_API thousands_sep_result<char> thousands_sep_impl(locale_ref locale);
template FMT_API char decimal_point_impl(locale_ref locale);
template FMT_API void buffer<char>::append(const char* begin, const char* end);
template FMT_API void vformat_to(buffer<char>& out, string_view format,
                                 basic_format_args<FMT_BUFFER_CONTEXT(type_identity_t<char>)> arguments,
                                 locale_ref locale);

}  // namespace detail
FMT_END_NAMESPACE
