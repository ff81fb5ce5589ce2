// Texts that explain the numbers.

import { capital, plain, typeset } from "./format.js";

/**
 * Advice in one sentence: the server's, with plain names.
 * @param {{sentence?: string, changes: {feature: string, words: {clause: string}}[]}} advised
 */
export function adviceSentence({ sentence = "", changes }) {
  return typeset(changes.reduce((text, { feature, words: { clause } }) => {
    const own = clause.replace(feature, () => plain(feature));
    return text.replace(capital(clause), () => capital(own)).replace(clause, () => own);
  }, sentence));
}

/** How many retrained models accept. */
export function survivalSentence(survives, models) {
  if (models === 0) return "There are no retrained models.";
  if (survives === models) return `All ${models} retrained models would accept.`;
  if (survives === 0) return `None of ${models} retrained models would accept.`;
  return `${survives} of ${models} retrained models would accept.`;
}

/** The meaning of the stability. */
export function stabilitySentence(stability) {
  if (stability >= 0.75) return "very similar applicants are accepted too, with nearly the same score";
  if (stability >= 0.5) return "very similar applicants are mostly accepted, some with a lower score";
  return "small differences lower the score: a retrained model may reject";
}

/** The meaning of the cost. */
export const COST =
  "distance on the model's own scale; a changed category counts 2";

const VERDICTS = {
  certified: "established under its assumptions",
  empirical: "observed, but an assumption is only estimated",
  vacuous: "no guarantee",
};

/** The meaning of a verdict. */
export const verdictMeaning = (verdict) => VERDICTS[verdict] ?? verdict;

const TIERS = {
  ensemble: "Retrained models",
  forest: "Trees of retrained forests",
  theorem: "The paper's theorem",
  interval: "Small changes of weights",
};

/** The meaning of a standing, by the server's word for it. */
const STANDINGS = {
  proved: "it follows from the model's weights",
  declared: "declared by the operator, not checked",
  measured: "measured; the probability of error is included",
  estimated: "an estimate without a bound on its error",
  unknown: "not checked",
  broken: "known to be false",
};

/**
 * The parts of a certificate: the claims of its tiers, the strongest first, and the assumptions of
 * the claims with a guarantee, without duplicates.
 * @param {{verdict: string, claims: {tier: string, verdict: string, sentence: string, rests_on: string[]}[], tiers: {assumptions: {standing: string}[]}[], omitted: {tier: string, reason: string}[]}} certificate
 */
export function certificateWords({ verdict, claims, tiers, omitted }) {
  const strength = Object.keys(VERDICTS);
  const order = Object.keys(TIERS);
  const rank = (claim) => 10 * strength.indexOf(claim.verdict) + order.indexOf(claim.tier);
  // The claims are those of the tiers, in the same order.
  const all = claims.map((claim, index) => ({
    ...claim,
    title: TIERS[claim.tier] ?? claim.tier,
    assumptions: claim.rests_on.map((sentence, place) => {
      const { standing } = tiers[index].assumptions[place];
      return [sentence, { sentence, standing, meaning: STANDINGS[standing] }];
    }),
  }));
  const sorted = all.toSorted((a, b) => rank(a) - rank(b));
  const promising = sorted.filter((claim) => claim.verdict !== "vacuous");
  return {
    verdict,
    claims: sorted,
    assumptions: [...new Map(promising.flatMap((claim) => claim.assumptions)).values()],
    omitted: omitted.map(({ tier, reason }) => ({ title: TIERS[tier] ?? tier, reason })),
  };
}
