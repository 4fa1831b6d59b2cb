// MPI's predefined datatypes and operations in libmsanam's terms.
#include <float.h>
#include <msa_nam.h>
#include <stddef.h>

#include "layout.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// By size: what is an integer of whatever language.
static int Integer(int bytes, int is_signed) {
  return bytes == 1   ? (is_signed ? MSA_NAM_INT8 : MSA_NAM_UINT8)
         : bytes == 2 ? (is_signed ? MSA_NAM_INT16 : MSA_NAM_UINT16)
         : bytes == 4 ? (is_signed ? MSA_NAM_INT32 : MSA_NAM_UINT32)
         : bytes == 8 ? (is_signed ? MSA_NAM_INT64 : MSA_NAM_UINT64)
                      : -1;
}

static int Real(int bytes) { return bytes == 4 ? MSA_NAM_FLOAT : bytes == 8 ? MSA_NAM_DOUBLE : -1; }

static int Complex(int bytes) {
  return bytes == 8 ? MSA_NAM_FLOAT_COMPLEX : bytes == 16 ? MSA_NAM_DOUBLE_COMPLEX : -1;
}

enum family { kSigned, kUnsigned, kReal, kComplex, kLogical };

static struct msa_element table[96];
static size_t entries;

static void Add(MPI_Datatype type, int nam_type, enum msa_element_kind kind) {
  if (type == MPI_DATATYPE_NULL || nam_type < 0 || entries == COUNT(table)) return;
  table[entries++] = (struct msa_element){type, nam_type, kind};
}

static void AddFamily(const MPI_Datatype* types, size_t count, enum family family) {
  for (size_t i = 0; i < count; ++i) {
    int bytes = 0;
    if (types[i] == MPI_DATATYPE_NULL || PMPI_Type_size(types[i], &bytes) != MPI_SUCCESS) continue;
    const int nam_type = family == kReal      ? Real(bytes)
                         : family == kComplex ? Complex(bytes)
                                              : Integer(bytes, family != kUnsigned);
    Add(types[i], nam_type,
        family == kLogical   ? kMsaLogical
        : family == kComplex ? kMsaComplex
        : family == kReal    ? kMsaReal
                             : kMsaInteger);
  }
}

static void FillNumbers(void) {
  const MPI_Datatype integers[] = {MPI_INT,      MPI_LONG,     MPI_LONG_LONG, MPI_SHORT,   MPI_SIGNED_CHAR,
                                   MPI_CHAR,     MPI_INT8_T,   MPI_INT16_T,   MPI_INT32_T, MPI_INT64_T,
                                   MPI_AINT,     MPI_OFFSET,   MPI_COUNT,     MPI_INTEGER, MPI_INTEGER1,
                                   MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8,  MPI_WCHAR};
  const MPI_Datatype naturals[] = {MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT,     MPI_UNSIGNED,
                                   MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T,
                                   MPI_UINT16_T,      MPI_UINT32_T,           MPI_UINT64_T};
  const MPI_Datatype reals[] = {MPI_FLOAT, MPI_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8};
  const MPI_Datatype complexes[] = {MPI_C_FLOAT_COMPLEX,   MPI_C_DOUBLE_COMPLEX,  MPI_COMPLEX,
                                    MPI_DOUBLE_COMPLEX,    MPI_COMPLEX8,          MPI_COMPLEX16,
                                    MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX};
  const MPI_Datatype logicals[] = {MPI_C_BOOL, MPI_LOGICAL, MPI_CXX_BOOL};
  AddFamily(integers, COUNT(integers), kSigned);
  AddFamily(naturals, COUNT(naturals), kUnsigned);
  AddFamily(reals, COUNT(reals), kReal);
  AddFamily(complexes, COUNT(complexes), kComplex);
  AddFamily(logicals, COUNT(logicals), kLogical);
  Add(MPI_LONG_DOUBLE, MSA_NAM_LONG_DOUBLE, kMsaReal);
  Add(MPI_C_LONG_DOUBLE_COMPLEX, MSA_NAM_LONG_DOUBLE_COMPLEX, kMsaComplex);
  Add(MPI_CXX_LONG_DOUBLE_COMPLEX, MSA_NAM_LONG_DOUBLE_COMPLEX, kMsaComplex);
}

static void FillOthers(void) {
  Add(MPI_BYTE, MSA_NAM_BYTE, kMsaBytes);
  Add(MPI_PACKED, MSA_NAM_BYTE, kMsaOpaque);
  Add(MPI_CHARACTER, MSA_NAM_BYTE, kMsaOpaque);
  Add(MPI_FLOAT_INT, MSA_NAM_FLOAT_INT, kMsaPair);
  Add(MPI_DOUBLE_INT, MSA_NAM_DOUBLE_INT, kMsaPair);
  Add(MPI_LONG_INT, MSA_NAM_LONG_INT, kMsaPair);
  Add(MPI_2INT, MSA_NAM_TWO_INT, kMsaPair);
  Add(MPI_2INTEGER, MSA_NAM_TWO_INT, kMsaPair);
  Add(MPI_SHORT_INT, MSA_NAM_SHORT_INT, kMsaPair);
  Add(MPI_LONG_DOUBLE_INT, MSA_NAM_LONG_DOUBLE_INT, kMsaPair);
}

const struct msa_element* msa_element_find(MPI_Datatype type) {
  // By layout.c, under its lock.
  if (entries == 0) {
    FillNumbers();
    FillOthers();
  }
  for (size_t i = 0; i < entries; ++i)
    if (table[i].type == type) return &table[i];
  return NULL;
}

int msa_element_of_f90(MPI_Datatype type, struct msa_element* element) {
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED, bytes = 0;
  int asked[2] = {0};  // precision and range, or the range of an integer
  if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return 0;
  const int is_complex = combiner == MPI_COMBINER_F90_COMPLEX, is_real = combiner == MPI_COMBINER_F90_REAL;
  if (!is_complex && !is_real && combiner != MPI_COMBINER_F90_INTEGER) return 0;
  if (integers > 2 || PMPI_Type_get_contents(type, 2, 0, 0, asked, NULL, NULL) != MPI_SUCCESS ||
      PMPI_Type_size(type, &bytes) != MPI_SUCCESS)
    return 0;
  element->type = type;
  element->kind = is_complex ? kMsaComplex : is_real ? kMsaReal : kMsaInteger;
  element->nam_type = is_complex ? Complex(bytes) : is_real ? Real(bytes) : Integer(bytes, 1);
  // Sixteen bytes are the x87's ten, or, of more digits, a number that no element of NAM is.
  const int is_x87 = asked[0] != MPI_UNDEFINED && asked[0] <= LDBL_DIG;
  if (is_real && bytes == 16 && is_x87) element->nam_type = MSA_NAM_LONG_DOUBLE;
  if (is_complex && bytes == 32 && is_x87) element->nam_type = MSA_NAM_LONG_DOUBLE_COMPLEX;
  return 1;
}

int msa_op_of(MPI_Op op, enum msa_element_kind kind) {
  if (op == MPI_REPLACE) return MSA_NAM_REPLACE;
  if (op == MPI_NO_OP) return MSA_NAM_NO_OP;
  const int is_integer = kind == kMsaInteger, is_number = is_integer || kind == kMsaReal;
  if (op == MPI_SUM) return is_number || kind == kMsaComplex ? MSA_NAM_SUM : -1;
  if (op == MPI_PROD) return is_number || kind == kMsaComplex ? MSA_NAM_PROD : -1;
  if (op == MPI_MIN) return is_number ? MSA_NAM_MIN : -1;
  if (op == MPI_MAX) return is_number ? MSA_NAM_MAX : -1;
  if (op == MPI_MINLOC) return kind == kMsaPair ? MSA_NAM_MINLOC : -1;
  if (op == MPI_MAXLOC) return kind == kMsaPair ? MSA_NAM_MAXLOC : -1;
  const int is_truth = is_integer || kind == kMsaLogical;
  if (op == MPI_LAND) return is_truth ? MSA_NAM_LAND : -1;
  if (op == MPI_LOR) return is_truth ? MSA_NAM_LOR : -1;
  if (op == MPI_LXOR) return is_truth ? MSA_NAM_LXOR : -1;
  const int has_bits = is_integer || kind == kMsaBytes;
  if (op == MPI_BAND) return has_bits ? MSA_NAM_BAND : -1;
  if (op == MPI_BOR) return has_bits ? MSA_NAM_BOR : -1;
  if (op == MPI_BXOR) return has_bits ? MSA_NAM_BXOR : -1;
  return -1;
}
