"""MTNM's names, numbers and enumerations, and what each is in MTOSI. The page docs/mtnm.md shows these tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mtosi_jms.stubs.fmw.fts import FileTransferStatusEnumType
from mtosi_jms.stubs.nra.com import (
    AcknowledgeIndicationType,
    EquipmentProtectionGroupTypeEnumType,
    EquipmentSwitchReasonEnumType,
    PerceivedSeverityType,
    ProtectionTypeEnumType,
    ServiceAffectingType,
    SwitchReasonType,
)
from mtosi_jms.stubs.nra.pm import (
    PerformanceMonitoringGranularityType,
    PerformanceMonitoringLocationType,
    PerformanceMonitoringThresholdTypeType,
)
from mtosi_jms.stubs.nra.tca import AcknowledgeIndicationType as AlertAcknowledgeType
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType
from mtosi_jms.stubs.nrf.com import (
    ConnectionDirectionType,
    DirectionalityType,
    EquipmentHolderEnumType,
    HolderStateType,
    ResourceFulfillmentStateEnumType,
    SubnetworkConnectionTypeType,
    TerminationModeType,
    TerminationPointConnectionStateType,
    TerminationPointProtectionAssociationType,
)
from mtosi_jms.stubs.nrf.me import CommunicationStateType
from mtosi_jms.stubs.rp.sdc import CurrentOperationStatusType
from mtosi_jms.xmlbind import XmlEnum

OTHER_TYPE_NAMES: Final[Mapping[str, str]] = {
    "NT_HEALTH": "NT_HEARTBEAT",
    "NT_HEART_BEAT": "NT_HEARTBEAT",
    "NT_WDMPROTECTION_SWITCH": "NT_PROTECTION_SWITCH",
    "NT_ATMPROTECTION_SWITCH": "NT_PROTECTION_SWITCH",
    "NT_RPRPROTECTION_SWITCH": "NT_PROTECTION_SWITCH",
}
"""Maps other names of event types, which are in use, to MTNM's names."""

STEPS: Final[Mapping[str, str]] = {
    "EMS": "MD",
    "ManagedElement": "ME",
    "EquipmentHolder": "EH",
    "Equipment": "EQ",
    "PTP": "PTP",
    "FTP": "FTP",
    "CTP": "CTP",
    "GTP": "GTP",
    "TPPool": "TPPOOL",
    "TopologicalLink": "TL",
    "SubnetworkConnection": "SNC",
    "MultiLayerSubnetwork": "MLSN",
    "PGP": "PG",
    "EPGP": "EPG",
    "PMP": "PMP",
    "AID": "AID",
    "ASAP": "ASAP",
    "TCAParameterProfile": "TCAPP",
    "TransmissionDescriptor": "TMD",
    "TrafficDescriptor": "TMD",
    "TrafficConditioningProfile": "TCPROFILE",
    "FlowDomain": "FD",
    "FlowDomainFragment": "FDFR",
    "MatrixFlowDomain": "MFD",
    "OS": "OS",
}
"""Maps the kind of a step in a name from MTNM to MTOSI."""

OBJECT_TYPES: Final[Mapping[str, str]] = {
    "OT_EMS": "MD",
    "OT_MANAGED_ELEMENT": "ME",
    "OT_MULTILAYER_SUBNETWORK": "MLSN",
    "OT_TOPOLOGICAL_LINK": "TL",
    "OT_SUBNETWORK_CONNECTION": "SNC",
    "OT_PHYSICAL_TERMINATION_POINT": "PTP",
    "OT_CONNECTION_TERMINATION_POINT": "CTP",
    "OT_TERMINATION_POINT_POOL": "TPPOOL",
    "OT_EQUIPMENT_HOLDER": "EH",
    "OT_EQUIPMENT": "EQ",
    "OT_PROTECTION_GROUP": "PG",
    "OT_TRAFFIC_DESCRIPTOR": "TMD",
    "OT_AID": "AID",
}
"""Maps objectType from MTNM to MTOSI, in the order of MTNM's numbers."""

QUALIFIERS: Final[Mapping[str, str]] = {
    "OT_EPROTECTION_GROUP": "EPG",
    "OT_TCA_PARAMETER_PROFILE": "TCAPP",
    "OT_PMP": "PMP",
    "OT_GTP": "GTP",
    "OT_ASAP": "ASAP",
    "OT_TRANSMISSION_DESCRIPTOR": "TMD",
    "OT_FLOW_DOMAIN": "FD",
    "OT_FLOW_DOMAIN_FRAGMENT": "FDFR",
    "OT_MATRIX_FLOW_DOMAIN": "MFD",
    "OT_TRAFFIC_CONDITIONING_PROFILE": "TCPROFILE",
}
"""Maps MTNM's objectTypeQualifier, which says what an OT_AID is, to MTOSI's type."""

_RATES: Final = [
    "LR_Not_Applicable",
    "LR_T1_and_DS1_1_5M",
    "LR_T2_and_DS2_6M",
    "LR_T3_and_DS3_45M",
    "LR_E1_2M",
    "LR_E2_8M",
    "LR_E3_34M",
    "LR_E4_140M",
    "LR_E5_565M",
    "LR_VT1_5_and_TU11_VC11",
    "LR_VT2_and_TU12_VC12",
    "LR_VT6_and_TU2_VC2",
    "LR_Low_Order_TU3_VC3",
    "LR_STS1_and_AU3_High_Order_VC3",
    "LR_STS3c_and_AU4_VC4",
    "LR_STS12c_and_VC4_4c",
    "LR_STS48c_and_VC4_16c",
    "LR_STS192c_and_VC4_64c",
    "LR_Section_OC1_STS1_and_RS_STM0",
    "LR_Section_OC3_STS3_and_RS_STM1",
    "LR_Section_OC12_STS12_and_RS_STM4",
    "LR_Section_OC48_STS48_and_RS_STM16",
    "LR_Section_OC192_STS192_and_RS_STM64",
    "LR_Line_OC1_STS1_and_MS_STM0",
    "LR_Line_OC3_STS3_and_MS_STM1",
    "LR_Line_OC12_STS12_and_MS_STM4",
    "LR_Line_OC48_STS48_and_MS_STM16",
    "LR_Line_OC192_STS192_and_MS_STM64",
]
_MORE_RATES: Final = [
    "LR_Optical_Channel",
    "LR_Optical_Multiplex_Section",
    "LR_Optical_Transmission_Section",
    "LR_ATM_NI",
    "LR_ATM_VP",
    "LR_ATM_VC",
    "LR_PHYSICAL_ELECTRICAL",
    "LR_PHYSICAL_OPTICAL",
    "LR_PHYSICAL_MEDIALESS",
    "LR_OPTICAL_SECTION",
    "LR_DIGITAL_SIGNAL_RATE",
    "LR_Async_FOTS_150M",
    "LR_Async_FOTS_417M",
    "LR_Async_FOTS_560M",
    "LR_Async_FOTS_565M",
    "LR_Async_FOTS_1130M",
    "LR_Async_FOTS_1G7",
    "LR_Async_FOTS_1G8",
    "LR_D1_Video",
    "LR_ESCON",
    "LR_ETR",
    "LR_Fast_Ethernet",
    "LR_FC_12_133M",
    "LR_FC_25_266M",
    "LR_FC_50_531M",
    "LR_FC_100_1063M",
    "LR_FDDI",
    "LR_FICON",
    "LR_Gigabit_Ethernet",
    "LR_DS0_64K",
    "LR_ISDN_BRI",
    "LR_POTS",
    "LR_DSR_OC1_STM0",
    "LR_DSR_OC3_STM1",
    "LR_DSR_OC12_STM4",
    "LR_DSR_OC24_STM8",
    "LR_DSR_OC48_and_STM16",
    "LR_DSR_OC192_and_STM64",
    "LR_DSR_OC768_and_STM256",
    "LR_DSR_1_5M",
    "LR_DSR_2M",
    "LR_DSR_6M",
    "LR_DSR_8M",
    "LR_DSR_34M",
    "LR_DSR_45M",
    "LR_DSR_140M",
    "LR_DSR_565M",
    "LR_DSR_Gigabit_Ethernet",
    "LR_Section_OC24_STS24_and_RS_STM8",
    "LR_Line_OC24_STS24_and_MS_STM8",
    "LR_Section_OC768_STS768_and_RS_STM256",
    "LR_Line_OC768_STS768_and_MS_STM256",
    "LR_STS768c_and_VC4_256c",
    "LR_DSR_2xSTM1",
    "LR_E20_2x2M",
    "LR_E30_8x2M",
    "LR_Ethernet",
    "LR_DSR_Fast_Ethernet",
    "LR_Encapsulation",
    "LR_Fragment",
    "LR_STS6c_and_VC4_2c",
    "LR_STS9c_and_VC4_3c",
    "LR_STS21c_and_VC4_7c",
    "LR_STS24c_and_VC4_8c",
    "LR_OCH_Data_Unit_1",
    "LR_OCH_Data_Unit_2",
    "LR_OCH_Data_Unit_3",
    "LR_OCH_Transport_Unit_1",
    "LR_OCH_Transport_Unit_2",
    "LR_OCH_Transport_Unit_3",
    "LR_DSR_OTU1",
    "LR_DSR_OTU2",
    "LR_DSR_OTU3",
    "LR_DSR_10Gigabit_Ethernet",
]
LAYER_RATES: Final[Mapping[int, LayerRateEnumType]] = {
    number: LayerRateEnumType(name)
    for number, name in [*enumerate(_RATES, 1), *enumerate(_MORE_RATES, 40), (299, "LR_DSL")]
}
"""Maps MTNM's numbers of layer rates to MTOSI's layer rates."""

LAYER_NAMES: Final[Mapping[str, LayerRateEnumType]] = {
    rate.value.casefold(): rate for rate in LayerRateEnumType if not rate.value.endswith((".", "_EXT"))
}
"""Maps names of layer rates in lower case, which are the same in MTNM and MTOSI, to MTOSI's layer rates."""


@dataclass(frozen=True)
class Choices:
    """An enumeration of MTNM.

    Attributes:
        members: maps MTNM's members, in the order of their numbers, to MTOSI's values.
        numbered: whether the numbers are known; otherwise only names are read.
        boolean: the values for the booleans False and True; None if a boolean cannot be read.
        prefix: prefix of MTNM's names; names without it are read as well.
    """

    name: str
    members: Mapping[str, XmlEnum]
    numbered: bool = True
    boolean: tuple[XmlEnum, XmlEnum] | None = None
    prefix: str = ""
    folded: Mapping[str, XmlEnum] = field(init=False, repr=False, compare=False)
    by_number: tuple[XmlEnum, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        folded: dict[str, XmlEnum] = {}
        for name, value in self.members.items():
            for form in (name, name.removeprefix(self.prefix), value.value):
                folded.setdefault(form.casefold(), value)
        object.__setattr__(self, "folded", folded)
        object.__setattr__(self, "by_number", tuple(self.members.values()) if self.numbered else ())


def _same(name: str, kind: type[XmlEnum], *, numbered: bool = False, prefix: str = "") -> Choices:
    """Return an enumeration with the same names in MTNM and MTOSI."""
    return Choices(name, {one.value: one for one in kind if one.value != "MINOR_EXT"}, numbered, None, prefix)


_SEVERITY = PerceivedSeverityType
SEVERITY: Final = Choices(
    "PerceivedSeverity_T",
    {
        "PS_INDETERMINATE": _SEVERITY.INDETERMINATE,
        "PS_CRITICAL": _SEVERITY.CRITICAL,
        "PS_MAJOR": _SEVERITY.MAJOR,
        "PS_MINOR": _SEVERITY.MINOR,
        "PS_WARNING": _SEVERITY.WARNING,
        "PS_CLEARED": _SEVERITY.CLEARED,
    },
    prefix="PS_",
)
SERVICE_AFFECTING: Final = Choices(
    "ServiceAffecting_T",
    {
        "SA_UNKNOWN": ServiceAffectingType.UNKNOWN,
        "SA_SERVICE_AFFECTING": ServiceAffectingType.SERVICE_AFFECTING,
        "SA_NON_SERVICE_AFFECTING": ServiceAffectingType.NON_SERVICE_AFFECTING,
    },
    boolean=(ServiceAffectingType.NON_SERVICE_AFFECTING, ServiceAffectingType.SERVICE_AFFECTING),
    prefix="SA_",
)
ACKNOWLEDGE: Final = Choices(
    "AcknowledgeIndication_T",
    {
        "AI_EVENT_ACKNOWLEDGED": AcknowledgeIndicationType.ACKNOWLEDGED,
        "AI_EVENT_UNACKNOWLEDGED": AcknowledgeIndicationType.UNACKNOWLEDGED,
        "AI_NA": AcknowledgeIndicationType.NOT_APPLICABLE,
    },
    boolean=(AcknowledgeIndicationType.UNACKNOWLEDGED, AcknowledgeIndicationType.ACKNOWLEDGED),
    prefix="AI_",
)
ALERT_ACKNOWLEDGE: Final = Choices(
    "AcknowledgeIndication_T",
    {
        "AI_EVENT_ACKNOWLEDGED": AlertAcknowledgeType.EVENT_ACKNOWLEDGED,
        "AI_EVENT_UNACKNOWLEDGED": AlertAcknowledgeType.EVENT_UNACKNOWLEDGED,
        "AI_NA": AlertAcknowledgeType.NA,
    },
    boolean=(AlertAcknowledgeType.EVENT_UNACKNOWLEDGED, AlertAcknowledgeType.EVENT_ACKNOWLEDGED),
    prefix="AI_",
)
TRANSFER: Final = Choices(
    "FileTransferStatus_T",
    {
        "FT_IN_PROGRESS": FileTransferStatusEnumType.FT_IN_PROGRESS,
        "FT_FAILED": FileTransferStatusEnumType.FT_FAILED,
        "FT_COMPLETED": FileTransferStatusEnumType.FT_COMPLETED,
    },
    prefix="FT_",
)
PROTECTION: Final = Choices(
    "ProtectionType_T",
    {"PT_MSP_APS": ProtectionTypeEnumType.MSP_APS, "PT_SNCP": ProtectionTypeEnumType.SNCP},
    prefix="PT_",
)
SWITCH_REASON: Final = Choices(
    "SwitchReason_T",
    {
        "SR_NA": SwitchReasonType.NOT_APPLICABLE,
        "SR_RESTORED": SwitchReasonType.RESTORED,
        "SR_SIGNAL_FAIL": SwitchReasonType.SIGNAL_FAIL,
        "SR_SIGNAL_MISMATCH": SwitchReasonType.SIGNAL_MISMATCH,
        "SR_SIGNAL_DEGRADE": SwitchReasonType.SIGNAL_DEGRADE,
        "SR_AUTOMATIC_SWITCH": SwitchReasonType.AUTOMATIC_SWITCH,
        "SR_MANUAL": SwitchReasonType.MANUAL,
    },
    prefix="SR_",
)
EQUIPMENT_PROTECTION: Final = Choices(
    "EProtectionGroupType_T",
    {
        "M_FOR_N": EquipmentProtectionGroupTypeEnumType.M_FOR_N,
        "M:N": EquipmentProtectionGroupTypeEnumType.M_N,
    },
    numbered=False,
    prefix="EPGT_",
)
EQUIPMENT_REASON: Final = Choices(
    "ESwitchReason_T",
    {
        "ESR_NA": EquipmentSwitchReasonEnumType.NOT_APPLICABLE,
        "ESR_FAILURE": EquipmentSwitchReasonEnumType.FAILURE,
        "ESR_MANUAL": EquipmentSwitchReasonEnumType.MANUAL,
    },
    numbered=False,
    prefix="ESR_",
)
BACKUP: Final = Choices(
    "Current_OperationStatus_T",
    {
        "COS_Idle": CurrentOperationStatusType.IDLE,
        "COS_Pending": CurrentOperationStatusType.PENDING,
        "COS_InProgress": CurrentOperationStatusType.IN_PROGRESS,
        "COS_Completed": CurrentOperationStatusType.COMPLETED,
        "COS_Aborted": CurrentOperationStatusType.ABORTED,
    },
    prefix="COS_",
)
THRESHOLD: Final = _same("PMThresholdType_T", PerformanceMonitoringThresholdTypeType, numbered=True, prefix="TWM_")
GRANULARITY: Final = _same("Granularity_T", PerformanceMonitoringGranularityType)
LOCATION: Final = Choices(
    "PMLocation_T",
    {
        "PML_NEAR_END_Rx": PerformanceMonitoringLocationType.PML_NEAR_END_Rx,
        "PML_FAR_END_Rx": PerformanceMonitoringLocationType.PML_FAR_END_Rx,
        "PML_FAR_END_Tx": PerformanceMonitoringLocationType.PML_FAR_ENDTypex,
        "PML_BIDIRECTIONAL": PerformanceMonitoringLocationType.PML_BIDIRECTIONAL,
        "PML_CONTRA_NEAR_END_Rx": PerformanceMonitoringLocationType.PML_CONTRA_NEAR_END_Rx,
        "PML_CONTRA_FAR_END_Rx": PerformanceMonitoringLocationType.PML_CONTRA_FAR_END_Rx,
    },
    numbered=False,
    prefix="PML_",
)
COMMUNICATION: Final = Choices(
    "CommunicationState_T",
    {"CS_AVAILABLE": CommunicationStateType.CS_AVAILABLE, "CS_UNAVAILABLE": CommunicationStateType.CS_UNAVAILABLE},
    boolean=(CommunicationStateType.CS_UNAVAILABLE, CommunicationStateType.CS_AVAILABLE),
    prefix="CS_",
)
DIRECTION: Final = _same("ConnectionDirection_T", ConnectionDirectionType, numbered=True, prefix="CD_")
SHAPE: Final = _same("SNCType_T", SubnetworkConnectionTypeType, numbered=True, prefix="ST_")
DIRECTIONALITY: Final = _same("Directionality_T", DirectionalityType, prefix="D_")
CONNECTION_STATE: Final = _same("TPConnectionState_T", TerminationPointConnectionStateType, prefix="TPCS_")
MAPPING_MODE: Final = _same("TerminationMode_T", TerminationModeType, prefix="TM_")
ASSOCIATION: Final = _same("TPProtectionAssociation_T", TerminationPointProtectionAssociationType, prefix="TPPA_")
HOLDER_STATE: Final = _same("HolderState_T", HolderStateType)
HOLDER: Final = _same("EquipmentHolderType_T", EquipmentHolderEnumType)
SERVICE_STATE: Final = _same("ServiceState_T", ResourceFulfillmentStateEnumType)
