/**
 * Types that keep numbers of different meaning apart: `type InodeId = number & Brand<"InodeId">`. An InodeId can be
 * used as a number. Neither a plain number nor one of another brand can be used as an InodeId. Brands do not exist at
 * run time.
 */

declare const brand: unique symbol;

export interface Brand<Name extends string> {
  readonly [brand]: Name;
}
