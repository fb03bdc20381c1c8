// fmt 9 as a static library, for the tools: Debian ships it shared or header-only, the first would tie the binary to
// Debian, and the second adds seven seconds to every file that formats. These are the templates that fmt/format.h
// declares to be instantiated elsewhere; all else in format-inl.h is plain functions.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);

}  // namespace detail
FMT_END_NAMESPACE
