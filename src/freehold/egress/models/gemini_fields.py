"""The known fields of Gemini's generateContent, countTokens and embedContent. Source: the google-genai package."""

from freehold.egress.models.field_policy import (
    Check,
    Each,
    EitherCaseFields,
    Review,
    TextOr,
    data,
    encoded,
    fields,
    needs,
    scalar,
    schema,
    url,
)


def _fields(scalars: str = "", **known: Check) -> EitherCaseFields:
    return EitherCaseFields(fields(scalars, **known).known)


_INLINE = _fields("mimeType displayName", data=encoded)
_FILE = _fields("mimeType displayName", fileUri=url)
_PART = _fields(
    "text thought thoughtSignature",
    inlineData=_INLINE,
    fileData=_FILE,
    functionCall=_fields("id name willContinue", args=data, partialArgs=data),
    functionResponse=_fields(
        "id name willContinue scheduling", response=data, parts=Each(_fields(inlineData=_INLINE, fileData=_FILE))
    ),
    executableCode=needs("code-execution"),
    codeExecutionResult=needs("code-execution"),
    videoMetadata=_fields("startOffset endOffset fps"),
    mediaResolution=TextOr(_fields("level numTokens")),
    partMetadata=data,
)
_CONTENT = _fields("role", parts=Each(_PART))
TOOL = _fields(
    functionDeclarations=Each(
        _fields(
            "name description behavior",
            parameters=schema,
            parametersJsonSchema=schema,
            response=schema,
            responseJsonSchema=schema,
        )
    ),
    computerUse=_fields("environment", excludedPredefinedFunctions=data),
    googleSearch=needs("web-search"),
    googleSearchRetrieval=needs("web-search"),
    enterpriseWebSearch=needs("web-search"),
    googleMaps=needs("web-search"),
    parallelAiSearch=needs("web-search"),
    exaAiSearch=needs("web-search"),
    urlContext=needs("urls"),
    codeExecution=needs("code-execution"),
    fileSearch=needs("stored"),
    retrieval=needs("stored"),
    mcpServers=needs("mcp", []),
)
_VOICE = _fields(prebuiltVoiceConfig=_fields("voiceName"))
_CONFIG = _fields(
    """candidateCount maxOutputTokens temperature topP topK seed responseMimeType responseLogprobs logprobs
    presencePenalty frequencyPenalty mediaResolution audioTimestamp enableAffectiveDialog
    enableEnhancedCivicAnswers""",
    stopSequences=Each(scalar),
    responseSchema=schema,
    responseJsonSchema=schema,
    responseModalities=Each(scalar),
    thinkingConfig=_fields("includeThoughts thinkingBudget thinkingLevel"),
    imageConfig=_fields("aspectRatio imageSize personGeneration outputMimeType outputCompressionQuality"),
    speechConfig=_fields(
        "languageCode",
        voiceConfig=_VOICE,
        multiSpeakerVoiceConfig=_fields(speakerVoiceConfigs=Each(_fields("speaker", voiceConfig=_VOICE))),
    ),
)
GENERATE = _fields(
    "model serviceTier",
    contents=Each(_CONTENT),
    systemInstruction=TextOr(_CONTENT),
    tools=Each(TOOL),
    toolConfig=_fields(
        "includeServerSideToolInvocations",
        functionCallingConfig=_fields("mode streamFunctionCallArguments", allowedFunctionNames=Each(scalar)),
        retrievalConfig=_fields("languageCode", latLng=data),
    ),
    safetySettings=Each(_fields("category threshold method")),
    generationConfig=_CONFIG,
    labels=data,
    cachedContent=needs("stored"),
    store=needs("stored", False),
)


def _whole_request(value: object, review: Review) -> None:
    GENERATE(value, review)


COUNT = _fields("model", contents=Each(_CONTENT), generateContentRequest=_whole_request)
EMBED = _fields("model taskType title outputDimensionality autoTruncate", content=_CONTENT)
